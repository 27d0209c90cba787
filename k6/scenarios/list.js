// @ts-check
import { pause } from '../lib/arrivals.js';

/** @param {import('../lib/scenario.js').Tools} tools */
export function request({ api }) {
  api.listHotels();
}

/** @param {import('../lib/scenario.js').Tools} tools */
export function iteration(tools) {
  request(tools);
  pause();
}
