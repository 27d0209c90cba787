// @ts-check
// Arrivals of requests: the planned rate over time, and the waits between them.

import { sleep } from 'k6';
import { setTimeout } from 'k6/timers';

// A profile's plan: its rate at a given time, and its total number of arrivals.

/** @typedef {import('./profiles.js').Profile} Profile */
/** @typedef {import('./profiles.js').PlanStage} PlanStage */

/**
 * Return the planned arrivals per second; 0 before the plan starts and after it ends.
 * @param {PlanStage[]} plan
 * @param {number} elapsedSeconds since the scenario's start
 */
export function targetRateAt(plan, elapsedSeconds) {
  let remaining = elapsedSeconds;
  if (remaining < 0) return 0;
  for (const { duration_seconds, from, to } of plan) {
    if (remaining <= duration_seconds) return from + ((to - from) * remaining) / duration_seconds;
    remaining -= duration_seconds;
  }
  return 0;
}

// A closed load without pauses has no plan; no target of the lab creates more objects per second.
const MAX_CLOSED_RATE = 2000;

/**
 * Return the number above which no iteration's number is, whatever the speed of the target. Under a
 * closed load, generators number their iterations in turn: the fastest one decides.
 * @param {Profile} profile
 * @param {number} pauseSeconds after each request of a user: the shortest iteration
 */
export function plannedIterations(profile, pauseSeconds) {
  if (profile.plan === null && profile.unit === 'requests') {
    return MAX_CLOSED_RATE * Math.ceil(profile.durationSeconds) * profile.generators;
  }
  if (profile.plan === null) {
    const perVu = Math.ceil(profile.durationSeconds / pauseSeconds) + 1;
    return Math.ceil(profile.maxVUs / profile.generators) * perVu * profile.generators;
  }
  const stages = profile.plan.map(
    (stage) => (stage.duration_seconds * (stage.from + stage.to)) / 2,
  );
  return Math.ceil(stages.reduce((sum, arrivals) => sum + arrivals, 0));
}

// Arrivals from a single VU, for scenarios that compare the results of different requests: VUs
// share no memory.

/**
 * Send each request at its planned time, without waiting for earlier responses. Resolves at the
 * last response or the end of the plan, whichever is later.
 * @param {number} startedAt Unix time in ms
 * @param {import('./profiles.js').Profile} profile
 * @param {(n: number) => Promise<void>} send
 */
export async function sendArrivals(startedAt, profile, send) {
  const planned = plannedIterations(profile, 0);
  const spacingMs = (profile.durationSeconds * 1000) / planned;
  const requests = [];
  for (let n = 0; n < planned; n++) {
    await waitUntil(startedAt + n * spacingMs);
    requests.push(send(n));
  }
  await Promise.all([...requests, waitUntil(startedAt + profile.durationSeconds * 1000)]);
}

/**
 * @param {number} moment Unix time in ms
 * @returns {Promise<void>}
 */
export function waitUntil(moment) {
  const waitMs = moment - Date.now();
  return waitMs > 0
    ? new Promise((resolve) => void setTimeout(resolve, waitMs))
    : Promise.resolve();
}

// The article's think time between two requests. It also limits the requests of a closed load.
export const PAUSE_SECONDS = 1;

export function pause() {
  sleep(PAUSE_SECONDS);
}
