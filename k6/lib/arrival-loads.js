// @ts-check
// The loads in which a rate decides what arrives, whether the target keeps up or not.
import { arrivalsRead } from './arrivals.js';
import { seconds } from './seconds.js';

/** @typedef {import('./env.js').Variables} Variables */
/** @typedef {import('./profiles.js').Load} Load */
/** @typedef {import('./profiles.js').PlanStage} PlanStage */

/**
 * @param {Variables} variables
 * @returns {Load}
 */
export function breakpointBuild(variables) {
  const { rate, duration, limits } = arrivalsRead(variables, 500);
  return rampBuild('requests', [{ duration_seconds: duration, from: 0, to: rate }], limits);
}

/**
 * @param {Variables} variables
 * @returns {Load}
 */
export function holdBuild(variables) {
  const { rate, duration, limits } = arrivalsRead(variables, 50);
  return {
    ...rampBuild('requests', [{ duration_seconds: duration, from: rate, to: rate }], limits),
    executor: {
      executor: 'constant-arrival-rate',
      rate,
      timeUnit: '1s',
      duration: seconds(duration),
      ...limits,
    },
  };
}

// Around a spike: what a target bears easily whose break point is half of the spike's rate.
const CALM_SHARE = 0.25;
const CALM_BEFORE = 10;
const CALM_AFTER = 20;

/**
 * RATE all at once for DURATION, calm before it and after it: what does an overload leave behind?
 * @param {Variables} variables
 * @returns {Load}
 */
export function spikeBuild(variables) {
  const { rate, duration, limits } = arrivalsRead(variables, 100);
  const calm = Math.max(1, Math.round(rate * CALM_SHARE));
  const plan = [
    { duration_seconds: CALM_BEFORE, from: calm, to: calm },
    { duration_seconds: duration, from: rate, to: rate },
    { duration_seconds: CALM_AFTER, from: calm, to: calm },
  ];
  return rampBuild('requests', plan, limits);
}

/**
 * The article's own stages and VU limits. Its journeys sleep between requests, so a thousand VUs
 * can ask for about a thousand requests/s at most: part of its ceiling is the generator's.
 * @param {Variables} variables
 * @returns {Load}
 */
export function articleBuild(variables) {
  const { rate, duration, limits } = arrivalsRead(variables, 1000, [100, 1000]);
  return rampBuild('iterations', [{ duration_seconds: duration, from: 0, to: rate }], limits);
}

/**
 * @param {Variables} variables
 * @returns {Load}
 */
export function articleWarmBuild(variables) {
  const { rate, duration, limits } = arrivalsRead(variables, 1000, [100, 10000]);
  const plan = [
    { duration_seconds: 60, from: 0, to: 10 },
    { duration_seconds: duration, from: 10, to: rate },
  ];
  return rampBuild('iterations', plan, limits);
}

/**
 * @param {'requests' | 'iterations'} unit
 * @param {PlanStage[]} plan
 * @param {{ preAllocatedVUs: number, maxVUs: number }} limits
 * @returns {Load}
 */
function rampBuild(unit, plan, limits) {
  return {
    unit,
    plan,
    maxVUs: limits.maxVUs,
    durationSeconds: plan.reduce((sum, stage) => sum + stage.duration_seconds, 0),
    checkBodies: false,
    executor: {
      executor: 'ramping-arrival-rate',
      startRate: plan[0].from,
      timeUnit: '1s',
      stages: plan.flatMap(stagesOf),
      ...limits,
    },
  };
}

/**
 * k6 goes on from the rate at which the last stage ended; a stage of 0 s is a jump.
 * @param {PlanStage} stage
 * @param {number} index
 * @param {PlanStage[]} plan
 */
function stagesOf({ duration_seconds, from, to }, index, plan) {
  const jumps = index > 0 && plan[index - 1].to !== from;
  const stage = { duration: seconds(duration_seconds), target: to };
  return jumps ? [{ duration: '0s', target: from }, stage] : [stage];
}
