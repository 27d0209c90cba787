// @ts-check
// The named loads. A profile defines how arrivals grow; SCENARIO defines which requests arrive.

import { readDecimal, readDuration, readInteger, seconds } from './env.js';

// Options of a profile with arrivals: rate, duration and number of VUs.

/** @typedef {import('./env.js').Variables} Variables */

export const ARRIVAL_VARIABLES = ['RATE', 'DURATION', 'PRE_ALLOCATED_VUS', 'MAX_VUS'];

/**
 * @param {Variables} variables
 * @param {number} rateDefault
 * @param {[number, number]} [vus] pre-allocated and maximum; default: by the rate
 */
export function readArrivals(variables, rateDefault, vus) {
  const rate = readInteger(variables, 'RATE', rateDefault, 1, 100000);
  return {
    rate,
    duration: readDuration(variables, 'DURATION', 300),
    limits: readVus(variables, vus || defaultVus(rate)),
  };
}

/**
 * Return enough VUs for responses of 5 s, which is far beyond the break point. As many as memory
 * easily allows are pre-allocated: k6 drops an arrival that finds no free VU while it creates one.
 * @param {number} rate
 * @returns {[number, number]}
 */
function defaultVus(rate) {
  return [clamp(rate * 5, 50, 1000), clamp(rate * 5, 50, 5000)];
}

/**
 * @param {Variables} variables
 * @param {[number, number]} defaults
 */
function readVus(variables, [preAllocatedDefault, maxDefault]) {
  const preRequested = readInteger(variables, 'PRE_ALLOCATED_VUS', 0, 1, 50000);
  const maxVUs = readInteger(variables, 'MAX_VUS', Math.max(maxDefault, preRequested), 1, 50000);
  const preAllocatedVUs = preRequested || Math.min(preAllocatedDefault, maxVUs);
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

// Open loads: the rate decides what arrives, whether or not the target keeps up.

/**
 * @param {Variables} variables
 * @returns {Load}
 */
export function buildBreakpoint(variables) {
  const { rate, duration, limits } = readArrivals(variables, 500);
  const plan = [{ duration_seconds: duration, from: 0, to: rate }];
  return { ...buildRamp('requests', plan, limits), mayStopEarly: true };
}

// k6 accepts only whole rates; 0.25/s is a whole number of requests per minute.
const MINUTE = 60;
const GROWTH = 1.07;

/**
 * Increase the rate by 7 % a second from START_RATE on. Each rate then lasts equally long relative
 * to its size: one ramp finds 0.5/s as well as 5,000/s.
 * @param {Variables} variables
 * @returns {Load}
 */
export function buildGeometricBreakpoint(variables) {
  const rate = readInteger(variables, 'RATE', 500, 1, 100000);
  const start = readDecimal(variables, 'START_RATE', 1, 0.1, 100000);
  if (start >= rate) {
    throw new Error(`START_RATE=${start} is not below RATE=${rate}. Lower it, or raise RATE.`);
  }
  const limits = readVus(variables, defaultVus(rate));
  const load = buildRamp('requests', geometricPlan(start, rate), limits);
  const perMinute = (/** @type {number} */ perSecond) => Math.round(perSecond * MINUTE);
  const executor = /** @type {import('k6/options').RampingArrivalRateScenario} */ (load.executor);
  return {
    ...load,
    mayStopEarly: true,
    executor: {
      ...executor,
      startRate: perMinute(start),
      timeUnit: '1m',
      stages: executor.stages.map(({ duration, target }) => ({
        duration,
        target: perMinute(target),
      })),
    },
  };
}

/**
 * Return stages of one second each, with rates that k6 accepts.
 * @param {number} start
 * @param {number} rate
 * @returns {PlanStage[]}
 */
function geometricPlan(start, rate) {
  const steps = Math.ceil(Math.log(rate / start) / Math.log(GROWTH));
  const rates = Array.from({ length: steps + 1 }, (_, step) => {
    const planned = Math.min(start * GROWTH ** step, rate);
    return Math.round(planned * MINUTE) / MINUTE;
  });
  return rates.slice(1).map((to, step) => ({ duration_seconds: 1, from: rates[step], to }));
}

/**
 * @param {Variables} variables
 * @returns {Load}
 */
export function buildHold(variables) {
  const { rate, duration, limits } = readArrivals(variables, 50);
  return {
    ...buildRamp('requests', [{ duration_seconds: duration, from: rate, to: rate }], limits),
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
 * A constant rate, decimals included, that may end as soon as its outcome is clear: `lab capacity`.
 * @param {Variables} variables
 * @returns {Load}
 */
export function buildTrial(variables) {
  const rate = readDecimal(variables, 'RATE', 50, 0.1, 100000);
  const duration = readDuration(variables, 'DURATION', 30);
  const limits = readVus(variables, defaultVus(Math.ceil(rate)));
  const perMinute = Math.round(rate * MINUTE);
  const planned = perMinute / MINUTE;
  return {
    ...buildRamp('requests', [{ duration_seconds: duration, from: planned, to: planned }], limits),
    mayStopEarly: true,
    executor: {
      executor: 'constant-arrival-rate',
      rate: perMinute,
      timeUnit: '1m',
      duration: seconds(duration),
      ...limits,
    },
  };
}

// Rate around a spike: easily sustained by a target whose break point is half of the spike's rate.
const CALM_SHARE = 0.25;
const CALM_BEFORE = 10;
const CALM_AFTER = 20;
const SPIKE_VARIABLES = [...ARRIVAL_VARIABLES, 'CALM'];

/**
 * RATE at once for DURATION, with a calm rate before and, for CALM, after, to show the effects of an
 * overload.
 * @param {Variables} variables
 * @returns {Load}
 */
export function buildSpike(variables) {
  const { rate, duration, limits } = readArrivals(variables, 100);
  const calm = Math.max(1, Math.round(rate * CALM_SHARE));
  const plan = [
    { duration_seconds: CALM_BEFORE, from: calm, to: calm },
    { duration_seconds: duration, from: rate, to: rate },
    { duration_seconds: readDuration(variables, 'CALM', CALM_AFTER), from: calm, to: calm },
  ];
  return buildRamp('requests', plan, limits);
}

/**
 * The article's stages and VU limits. Its journeys sleep between requests, so a thousand VUs send
 * at most about a thousand requests/s: the generator causes part of the ceiling.
 * @param {Variables} variables
 * @returns {Load}
 */
export function buildArticle(variables) {
  const { rate, duration, limits } = readArrivals(variables, 1000, [100, 1000]);
  return buildRamp('iterations', [{ duration_seconds: duration, from: 0, to: rate }], limits);
}

/**
 * @param {Variables} variables
 * @returns {Load}
 */
export function buildWarmArticle(variables) {
  const { rate, duration, limits } = readArrivals(variables, 1000, [100, 10000]);
  const plan = [
    { duration_seconds: 60, from: 0, to: 10 },
    { duration_seconds: duration, from: 10, to: rate },
  ];
  return buildRamp('iterations', plan, limits);
}

/**
 * @param {'requests' | 'iterations'} unit
 * @param {PlanStage[]} plan
 * @param {{ preAllocatedVUs: number, maxVUs: number }} limits
 * @returns {Load}
 */
function buildRamp(unit, plan, limits) {
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
 * k6 continues from the rate at which the last stage ended; a stage of 0 s is a jump.
 * @param {PlanStage} stage
 * @param {number} index
 * @param {PlanStage[]} plan
 */
function stagesOf({ duration_seconds, from, to }, index, plan) {
  const jumps = index > 0 && plan[index - 1].to !== from;
  const stage = { duration: seconds(duration_seconds), target: to };
  return jumps ? [{ duration: '0s', target: from }, stage] : [stage];
}

// Closed loads: the number of VUs decides what arrives, so they slow down with the target.

/**
 * @param {Variables} variables
 * @returns {Load}
 */
export function buildSmoke(variables) {
  const vus = readInteger(variables, 'VUS', 5, 1, 1000);
  const durationSeconds = readDuration(variables, 'DURATION', 20);
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
      // A journey takes longer than 20 s; without this its last step, the booking, would never run.
      gracefulStop: '2m',
    },
  };
}

/**
 * Send requests as fast as the target responds: each VU waits for a response before its next
 * request. Such a load slows down with the target, so it finds no break point.
 * @param {Variables} variables
 * @returns {Load}
 */
export function buildClosed(variables) {
  const vus = readInteger(variables, 'VUS', 5, 1, 1000);
  const durationSeconds = readDuration(variables, 'DURATION', 20);
  return {
    unit: 'requests',
    plan: null,
    maxVUs: vus,
    durationSeconds,
    checkBodies: false,
    executor: { executor: 'constant-vus', vus, duration: seconds(durationSeconds) },
  };
}

// In the published load of 180 s, users arrive during the first 100 s.
const RAMP_SHARE = 100 / 180;

/**
 * The load of "sync vs async": users start one by one, then all continue to the end, without pauses
 * between requests. Requests still running at the end are cut off, so each load has a fixed length.
 * @param {Variables} variables
 * @returns {Load}
 */
export function buildClosedRamp(variables) {
  const vus = readInteger(variables, 'VUS', 500, 1, 1000);
  const durationSeconds = readDuration(variables, 'DURATION', 180);
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

// Recorded arrivals: a log decides what arrives, and when.

// A thousand VUs need half a second to start; the first arrivals would be late.
const LEAD_SECONDS = 1;
// For late arrivals and the last responses, in addition to gracefulStop.
const TIMES_OVERHEAD = 60;

/**
 * Send each arrival of a log at its time. The rate is not planned, so there is no break point.
 * @param {Variables} variables
 * @param {Recording | null} recording
 * @returns {Load}
 */
export function buildTimes(variables, recording) {
  const speed = readDecimal(variables, 'SPEED', 1, 0.01, 1000);
  if (!recording) {
    throw new Error(
      'PROFILE=times requires SCENARIO=replay, and a MIX with the times of a log. This one has none.',
    );
  }
  const [preAllocated] = defaultVus(Math.ceil(recording.peakRate * speed));
  const vus = readInteger(variables, 'VUS', preAllocated, 1, 1000);
  const durationSeconds = recording.seconds / speed;
  const maxDuration = seconds(durationSeconds + TIMES_OVERHEAD);
  return {
    unit: 'requests',
    plan: null,
    maxVUs: vus,
    durationSeconds,
    checkBodies: false,
    speed,
    leadSeconds: LEAD_SECONDS,
    executor: { executor: 'per-vu-iterations', vus, iterations: 1, maxDuration },
  };
}

/**
 * One stage of the plan, in arrivals per second; the rate changes linearly.
 * @typedef {{ duration_seconds: number, from: number, to: number }} PlanStage
 */

/**
 * @typedef {object} Profile
 * @property {string} name
 * @property {'requests' | 'iterations'} unit what arrives: single requests or whole iterations
 * @property {PlanStage[] | null} plan null for a closed load: VUs decide, not a rate
 * @property {number} maxVUs
 * @property {number} durationSeconds
 * @property {boolean} [cutsOff] the load ends after its duration; running requests are cut off
 * @property {boolean} [mayStopEarly] the load may end soon after the break without loss of data
 * @property {number} [speed] of recorded arrivals; set if each VU sends a part of them
 * @property {number} [leadSeconds] from the start of the VUs to the first arrival
 * @property {number} generators how many share the load
 * @property {boolean} checkBodies read and check bodies; only where load does not matter
 * @property {import('k6/options').Scenario} executor the k6 scenario, without its exec
 */

/** @typedef {Omit<Profile, 'name' | 'generators'>} Load */
/** @typedef {import('./mix.js').Recording} Recording */

/**
 * @typedef {object} Builder
 * @property {(variables: Variables, recording: Recording | null) => Load} build
 * @property {string[]} options
 */

const GEOMETRIC_VARIABLES = [
  'START_RATE',
  ...ARRIVAL_VARIABLES.filter((name) => name !== 'DURATION'),
];

const PROFILE_VARIABLES = ['VUS', 'SPEED', 'START_RATE', ...SPIKE_VARIABLES];

/** @type {Record<string, Builder>} */
const BUILDERS = {
  smoke: { build: buildSmoke, options: ['VUS', 'DURATION'] },
  breakpoint: { build: buildBreakpoint, options: ARRIVAL_VARIABLES },
  'breakpoint-geometric': { build: buildGeometricBreakpoint, options: GEOMETRIC_VARIABLES },
  hold: { build: buildHold, options: ARRIVAL_VARIABLES },
  trial: { build: buildTrial, options: ARRIVAL_VARIABLES },
  spike: { build: buildSpike, options: SPIKE_VARIABLES },
  closed: { build: buildClosed, options: ['VUS', 'DURATION'] },
  'closed-ramp': { build: buildClosedRamp, options: ['VUS', 'DURATION'] },
  'article-breakpoint': { build: buildArticle, options: ARRIVAL_VARIABLES },
  'article-breakpoint-warm': { build: buildWarmArticle, options: ARRIVAL_VARIABLES },
  times: { build: buildTimes, options: ['VUS', 'SPEED'] },
};

export const PROFILES = Object.keys(BUILDERS);

/**
 * @param {string} name one of PROFILES
 * @param {Variables} variables
 * @param {Recording | null} [recording] arrivals of a log, if the scenario has them
 * @returns {Profile}
 */
export function buildProfile(name, variables, recording = null) {
  const { build, options } = BUILDERS[name];
  const unused = PROFILE_VARIABLES.filter(
    (option) => variables[option] && !options.includes(option),
  );
  if (unused.length > 0) {
    throw new Error(
      `PROFILE=${name} does not use ${unused.join(', ')}. Unset it. ` +
        `PROFILE=${name} uses ${options.join(', ')}.`,
    );
  }
  return { name, generators: 1, ...build(variables, recording) };
}

/**
 * Return the profile as the scenario needs it.
 * @param {import('./env.js').Env} env
 * @param {import('./scenario').Scenario} scenario
 * @param {Variables} variables
 * @returns {Profile}
 */
export function profileFor(env, { singleVuOverhead, recordingOf }, variables) {
  const recording = recordingOf ? recordingOf(env) : null;
  const profile = {
    ...buildProfile(env.profile, variables, recording),
    generators: env.generators,
  };
  if (!singleVuOverhead) return profile;
  if (env.generators > 1) {
    throw new Error(
      `SCENARIO=${env.scenario} has one VU, so a single generator sends it. Leave out --generators, SEGMENT and GENERATORS.`,
    );
  }
  if (variables.MAX_VUS || variables.PRE_ALLOCATED_VUS) {
    throw new Error(`SCENARIO=${env.scenario} has one VU. Unset MAX_VUS and PRE_ALLOCATED_VUS.`);
  }
  const maxSeconds = profile.durationSeconds + env.clientTimeoutMs / 1000 + singleVuOverhead;
  const executor = /** @type {const} */ ('per-vu-iterations');
  return {
    ...profile,
    maxVUs: 1,
    executor: { executor, vus: 1, iterations: 1, maxDuration: seconds(maxSeconds) },
  };
}
