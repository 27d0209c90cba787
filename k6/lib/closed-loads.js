// @ts-check
// The loads in which VUs decide what arrives, not a rate: they slow down with the target.
import { envDuration, envInteger } from './env.js';
import { seconds } from './seconds.js';

/** @typedef {import('./env.js').Variables} Variables */
/** @typedef {import('./profiles.js').Load} Load */

/**
 * @param {Variables} variables
 * @returns {Load}
 */
export function smokeBuild(variables) {
  const vus = envInteger(variables, 'VUS', 5, 1, 1000);
  const durationSeconds = envDuration(variables, 'DURATION', 20);
  return {
    unit: 'iterations',
    plan: null,
    maxVUs: vus,
    durationSeconds,
    checkBodies: true,
    executor: {
      executor: 'constant-vus',
      vus,
      duration: seconds(durationSeconds),
      // A journey outlasts the 20 s: without the grace its last step, the booking, is never made.
      gracefulStop: '2m',
    },
  };
}

/**
 * As fast as the target answers: each VU sends its next request when it has the answer to its last.
 * Such a load slows down with the target, so it finds no break point.
 * @param {Variables} variables
 * @returns {Load}
 */
export function closedBuild(variables) {
  const vus = envInteger(variables, 'VUS', 5, 1, 1000);
  const durationSeconds = envDuration(variables, 'DURATION', 20);
  return {
    unit: 'requests',
    plan: null,
    maxVUs: vus,
    durationSeconds,
    checkBodies: false,
    executor: { executor: 'constant-vus', vus, duration: seconds(durationSeconds) },
  };
}

// Of the published load's 180 s, users arrive for 100.
const RAMP_SHARE = 100 / 180;

/**
 * The load of "sync vs async": users come one by one, then all of them go on to the end. They do not
 * wait between requests. Nothing is waited for after it, so that each load takes its time and no more.
 * @param {Variables} variables
 * @returns {Load}
 */
export function closedRampBuild(variables) {
  const vus = envInteger(variables, 'VUS', 500, 1, 1000);
  const durationSeconds = envDuration(variables, 'DURATION', 180);
  const rampMs = Math.round(durationSeconds * RAMP_SHARE * 1000);
  return {
    unit: 'requests',
    plan: null,
    maxVUs: vus,
    durationSeconds,
    cutsOff: true,
    checkBodies: false,
    executor: {
      executor: 'ramping-vus',
      startVUs: 0,
      stages: [
        { duration: `${rampMs}ms`, target: vus },
        { duration: `${Math.round(durationSeconds * 1000) - rampMs}ms`, target: vus },
      ],
      gracefulRampDown: '0s',
      gracefulStop: '0s',
    },
  };
}
