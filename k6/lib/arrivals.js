// @ts-check
// What a profile with arrivals is told: its rate, its time, and how many VUs may answer for it.
import { envDuration, envInteger } from './env.js';

/** @typedef {import('./env.js').Variables} Variables */

export const ARRIVAL_KNOBS = ['RATE', 'DURATION', 'PRE_ALLOCATED_VUS', 'MAX_VUS'];

/**
 * @param {Variables} variables
 * @param {number} rateDefault
 * @param {[number, number]} [vus] pre-allocated and max; without it they follow the rate
 */
export function arrivalsRead(variables, rateDefault, vus) {
  const rate = envInteger(variables, 'RATE', rateDefault, 1, 100000);
  return {
    rate,
    duration: envDuration(variables, 'DURATION', 300),
    limits: vusRead(variables, vus || vusDefault(rate)),
  };
}

/**
 * Enough for answers of five seconds: far beyond what counts as broken. As many as memory easily
 * bears are made before the start, because an arrival that finds no free VU is dropped while one
 * more is being made.
 * @param {number} rate
 * @returns {[number, number]}
 */
function vusDefault(rate) {
  return [clamp(rate * 5, 50, 1000), clamp(rate * 5, 50, 5000)];
}

/**
 * @param {Variables} variables
 * @param {[number, number]} defaults
 */
function vusRead(variables, [preDefault, maxDefault]) {
  const preGiven = envInteger(variables, 'PRE_ALLOCATED_VUS', 0, 1, 50000);
  const maxVUs = envInteger(variables, 'MAX_VUS', Math.max(maxDefault, preGiven), 1, 50000);
  const preAllocatedVUs = preGiven || Math.min(preDefault, maxVUs);
  if (preAllocatedVUs > maxVUs) {
    throw new Error(
      `PRE_ALLOCATED_VUS=${preAllocatedVUs} exceeds MAX_VUS=${maxVUs}. Raise MAX_VUS to it.`,
    );
  }
  return { preAllocatedVUs, maxVUs };
}

/**
 * @param {number} value
 * @param {number} min
 * @param {number} max
 */
function clamp(value, min, max) {
  return Math.min(Math.max(value, min), max);
}
