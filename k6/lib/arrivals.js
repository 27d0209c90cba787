// @ts-check
// When requests arrive: the planned rate over time, and the waits between them.

import { sleep } from 'k6';
import { setTimeout } from 'k6/timers';

// Arithmetic on a profile's plan: what it asks for at a moment, and in all.

/** @typedef {import('./profiles.js').Profile} Profile */
/** @typedef {import('./profiles.js').PlanStage} PlanStage */

/**
 * Arrivals per second that the plan asks for; 0 before it starts and after it ends.
 * @param {PlanStage[]} plan
 * @param {number} elapsedSeconds since the scenario's start
 */
export function targetRateAt(plan, elapsedSeconds) {
  let left = elapsedSeconds;
  if (left < 0) return 0;
  for (const { duration_seconds, from, to } of plan) {
    if (left <= duration_seconds) return from + ((to - from) * left) / duration_seconds;
    left -= duration_seconds;
  }
  return 0;
}

// A closed load without pauses has no plan; no target of the lab answers more bookings per second.
const CLOSED_RATE_MAX = 2000;

/**
 * The most iterations that the profile can start.
 * @param {Profile} profile
 * @param {number} pauseSeconds after each request of a visitor, so an iteration is no shorter
 */
export function iterationsPlanned(profile, pauseSeconds) {
  if (profile.plan === null && profile.unit === 'requests') {
    return CLOSED_RATE_MAX * Math.ceil(profile.durationSeconds);
  }
  if (profile.plan === null) {
    return profile.maxVUs * (Math.ceil(profile.durationSeconds / pauseSeconds) + 1);
  }
  const stages = profile.plan.map(
    (stage) => (stage.duration_seconds * (stage.from + stage.to)) / 2,
  );
  return Math.ceil(stages.reduce((sum, arrivals) => sum + arrivals, 0));
}

// Arrivals that one VU makes by itself, where what they have to do with each other must meet in one
// memory: VUs share none.

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

// The article's think time between two requests. Also bounds how many requests a closed load makes.
export const PAUSE_SECONDS = 1;

export function pause() {
  sleep(PAUSE_SECONDS);
}

// How long WebSockets may take to open, all of them together: a server takes in some hundred a second.
export const OPENING_MS = 60000;
