// @ts-check
// The named loads. A profile says how arrivals grow; which requests arrive is SCENARIO's matter.
import {
  articleBuild,
  articleWarmBuild,
  breakpointBuild,
  holdBuild,
  spikeBuild,
} from './arrival-loads.js';
import { ARRIVAL_KNOBS } from './arrivals.js';
import { closedBuild, closedRampBuild, smokeBuild } from './closed-loads.js';
import { OPENING_MS } from './opening.js';
import { seconds } from './seconds.js';

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
 * @property {boolean} [cutsOff] the load ends with its time: what is under way then is cut off
 * @property {boolean} checkBodies bodies are read and checked only where load does not matter
 * @property {import('k6/options').Scenario} executor the k6 scenario, without its exec
 */

/** @typedef {Omit<Profile, 'name'>} Load */

/** @typedef {{ build: (variables: Variables) => Load, knobs: string[] }} Builder */

const KNOBS = ['VUS', ...ARRIVAL_KNOBS];

/** @type {Record<string, Builder>} */
const BUILDERS = {
  smoke: { build: smokeBuild, knobs: ['VUS', 'DURATION'] },
  breakpoint: { build: breakpointBuild, knobs: ARRIVAL_KNOBS },
  hold: { build: holdBuild, knobs: ARRIVAL_KNOBS },
  spike: { build: spikeBuild, knobs: ARRIVAL_KNOBS },
  closed: { build: closedBuild, knobs: ['VUS', 'DURATION'] },
  'closed-ramp': { build: closedRampBuild, knobs: ['VUS', 'DURATION'] },
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

// These make the arrivals by themselves, in one VU.
const ALONE = ['availability', 'faults'];

/**
 * The profile as its scenario needs it.
 * @param {import('./env.js').Env} env
 * @param {Variables} variables
 * @returns {Profile}
 */
export function profileFor(env, variables) {
  const profile = profileBuild(env.profile, variables);
  if (!ALONE.includes(env.scenario)) return profile;
  if (variables.MAX_VUS || variables.PRE_ALLOCATED_VUS) {
    throw new Error(`SCENARIO=${env.scenario} has one VU. Unset MAX_VUS and PRE_ALLOCATED_VUS.`);
  }
  const maxDuration = seconds(profile.durationSeconds + besideArrivals(env.clientTimeoutMs));
  const executor = /** @type {const} */ ('per-vu-iterations');
  return { ...profile, maxVUs: 1, executor: { executor, vus: 1, iterations: 1, maxDuration } };
}

/**
 * Seconds in which sockets open, last answers and messages come, and sockets close; at most.
 * @param {number} clientTimeoutMs
 */
function besideArrivals(clientTimeoutMs) {
  return (OPENING_MS + clientTimeoutMs) / 1000 + 60;
}
