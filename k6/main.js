// @ts-check
// Load on the hotel API. `k6 run main.js` is the smoke test; README.md lists the variables.
import { apiBuild } from './lib/api.js';
import { envRead } from './lib/env.js';
import { begunRecord, pulseRecord } from './lib/metrics.js';
import { optionsBuild } from './lib/options.js';
import { targetPrepare } from './lib/prepare.js';
import { PROFILES, profileFor } from './lib/profiles.js';
import { summaryBuild } from './lib/summary.js';
import { workbenchBuild } from './lib/workbench.js';
import * as availabilityScenario from './scenarios/availability.js';
import * as bookingScenario from './scenarios/booking.js';
import * as detailScenario from './scenarios/detail.js';
import * as journeyScenario from './scenarios/journey.js';
import * as listScenario from './scenarios/list.js';
import * as stalenessScenario from './scenarios/staleness.js';
import * as workbenchScenario from './scenarios/workbench.js';

/** @typedef {import('./lib/prepare.js').Prepared} Prepared */

const env = envRead(__ENV, PROFILES);
const profile = profileFor(env, __ENV);
const api = apiBuild(env, profile);
const bench = workbenchBuild(env);

export const options = optionsBuild(env, profile);

export function setup() {
  const prepared = targetPrepare(env, profile);
  // `lab profile` waits for it: what setup asks for is no part of the load.
  console.info('setup is done, the load begins');
  return prepared;
}

/** @param {Prepared} data */
export function journey(data) {
  run(journeyScenario, data);
}

/** @param {Prepared} data */
export function list(data) {
  run(listScenario, data);
}

/** @param {Prepared} data */
export function detail(data) {
  run(detailScenario, data);
}

/** @param {Prepared} data */
export function booking(data) {
  run(bookingScenario, data);
}

/** @param {Prepared} data */
export function staleness(data) {
  pulseRecord(profile);
  stalenessScenario.iteration(api, data, env.stalenessBoundMs);
}

/** @param {Prepared} data */
export function workbench(data) {
  begin();
  if (profile.unit === 'requests') workbenchScenario.request(bench, data);
  else workbenchScenario.iteration(bench, data);
}

/** @param {Prepared} data */
export async function availability(data) {
  await availabilityScenario.watch(api, env, profile, data);
}

/**
 * @param {Pick<typeof journeyScenario, 'request' | 'iteration'>} scenario
 * @param {Prepared} data
 */
function run(scenario, data) {
  begin();
  if (profile.unit === 'requests') scenario.request(api, data);
  else scenario.iteration(api, data);
}

function begin() {
  pulseRecord(profile);
  if (profile.cutsOff) begunRecord();
}

/** @param {any} data */
export function handleSummary(data) {
  return summaryBuild(env, profile, data);
}
