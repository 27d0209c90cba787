// @ts-check
// The named loads. A profile says how arrivals grow; which requests arrive is SCENARIO's matter.
import { envDuration, envInteger } from './env.js';

/** @typedef {import('./env.js').Variables} Variables */

/**
 * One stretch of the plan, in arrivals per second; the rate changes evenly.
 * @typedef {{ duration_seconds: number, from: number, to: number }} PlanStage
 */

/**
 * @typedef {object} Profile
 * @property {string} name
 * @property {'requests' | 'iterations'} unit what arrives: single requests, or whole iterations
 * @property {PlanStage[] | null} plan null where the load is closed: VUs decide, not a rate
 * @property {number} maxVUs
 * @property {number} durationSeconds
 * @property {boolean} checkBodies bodies are read and checked only where load does not matter
 * @property {import('k6/options').Scenario} executor the k6 scenario, without its exec
 */

/** @typedef {Omit<Profile, 'name'>} Load */

/** @typedef {{ build: (variables: Variables) => Load, knobs: string[] }} Builder */

const ARRIVAL_KNOBS = ['RATE', 'DURATION', 'PRE_ALLOCATED_VUS', 'MAX_VUS'];
const KNOBS = ['VUS', ...ARRIVAL_KNOBS];

/** @type {Record<string, Builder>} */
const BUILDERS = {
  smoke: { build: smokeBuild, knobs: ['VUS', 'DURATION'] },
  breakpoint: { build: breakpointBuild, knobs: ARRIVAL_KNOBS },
  hold: { build: holdBuild, knobs: ARRIVAL_KNOBS },
  closed: { build: closedBuild, knobs: ['VUS', 'DURATION'] },
  'article-breakpoint': { build: articleBuild, knobs: ARRIVAL_KNOBS },
  'article-breakpoint-warm': { build: articleWarmBuild, knobs: ARRIVAL_KNOBS },
};

export const PROFILES = Object.keys(BUILDERS);

/**
 * @param {string} name one of PROFILES
 * @param {Variables} variables
 * @returns {Profile}
 */
export function profileBuild(name, variables) {
  const { build, knobs } = BUILDERS[name];
  const unused = KNOBS.filter((knob) => variables[knob] && !knobs.includes(knob));
  if (unused.length > 0) {
    throw new Error(
      `PROFILE=${name} does not use ${unused.join(', ')}. Unset it; it takes ${knobs.join(', ')}.`,
    );
  }
  return { name, ...build(variables) };
}

/**
 * @param {Variables} variables
 * @returns {Load}
 */
function smokeBuild(variables) {
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
 * @param {Variables} variables
 * @returns {Load}
 */
function breakpointBuild(variables) {
  const { rate, duration, limits } = arrivalsRead(variables, 500);
  return rampBuild('requests', [{ duration_seconds: duration, from: 0, to: rate }], limits);
}

/**
 * @param {Variables} variables
 * @returns {Load}
 */
function holdBuild(variables) {
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

/**
 * As fast as the target answers: each VU sends its next request when it has the answer to its last.
 * Such a load slows down with the target, so it finds no break point.
 * @param {Variables} variables
 * @returns {Load}
 */
function closedBuild(variables) {
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

/**
 * The article's own stages and VU limits. Its journeys sleep between requests, so a thousand VUs
 * can ask for about a thousand requests/s at most: part of its ceiling is the generator's.
 * @param {Variables} variables
 * @returns {Load}
 */
function articleBuild(variables) {
  const { rate, duration, limits } = arrivalsRead(variables, 1000, [100, 1000]);
  return rampBuild('iterations', [{ duration_seconds: duration, from: 0, to: rate }], limits);
}

/**
 * @param {Variables} variables
 * @returns {Load}
 */
function articleWarmBuild(variables) {
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
      stages: plan.map((stage) => ({
        duration: seconds(stage.duration_seconds),
        target: stage.to,
      })),
      ...limits,
    },
  };
}

/**
 * @param {Variables} variables
 * @param {number} rateDefault
 * @param {[number, number]} [vus] pre-allocated and max; without it they follow the rate
 */
function arrivalsRead(variables, rateDefault, vus) {
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

/** @param {number} value k6 takes fractions as well: 1.5s */
function seconds(value) {
  return `${value}s`;
}
