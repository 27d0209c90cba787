// @ts-check
// Arrivals that one VU makes by itself, where what they have to do with each other must meet in one
// memory: VUs share none.
import { setTimeout } from 'k6/timers';
import { iterationsPlanned } from './plan.js';

/**
 * Each at its moment, whether those before it are answered or not; until the last one's answer, or the
 * end of the plan.
 * @param {number} startedAt Unix time in ms
 * @param {import('./profiles.js').Profile} profile
 * @param {(n: number) => Promise<void>} send
 */
export async function arrivals(startedAt, profile, send) {
  const planned = iterationsPlanned(profile, 0);
  const spacingMs = (profile.durationSeconds * 1000) / planned;
  const sent = [];
  for (let n = 0; n < planned; n++) {
    await until(startedAt + n * spacingMs);
    sent.push(send(n));
  }
  await Promise.all([...sent, until(startedAt + profile.durationSeconds * 1000)]);
}

/**
 * @param {number} moment Unix time in ms
 * @returns {Promise<void>}
 */
export function until(moment) {
  const waitMs = moment - Date.now();
  return waitMs > 0
    ? new Promise((resolve) => void setTimeout(resolve, waitMs))
    : Promise.resolve();
}
