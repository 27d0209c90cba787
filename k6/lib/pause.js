// @ts-check
import { sleep } from 'k6';

// The article's think time between two requests. Also bounds how many requests a closed load makes.
export const PAUSE_SECONDS = 1;

export function pause() {
  sleep(PAUSE_SECONDS);
}
