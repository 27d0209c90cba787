// @ts-check
// Load on the hotel API. `k6 run main.js` is the smoke test; README.md lists the variables.
import { buildApi } from './lib/api.js';
import { readEnv } from './lib/env.js';
import { recordPulse, recordStart } from './lib/metrics.js';
import { buildOptions } from './lib/options.js';
import { PROFILES, profileFor } from './lib/profiles.js';

/** @typedef {import('./lib/prepare.js').Prepared} Prepared */
/** @typedef {import('./lib/scenario.js').Scenario} Scenario */

const env = readEnv(__ENV, PROFILES);
const profile = profileFor(env, __ENV);
const tools = { api: buildApi(env, profile), env, profile };

export const options = buildOptions(env, profile);

// Each VU has a copy of every module that it loads, so it loads only its own scenario; setup and
// summary run in VU 0. With 1,000 VUs this saves 300 MB, and a third of the CPU time to start them.
/** @type {Scenario} */
const scenario = require(`./scenarios/${env.scenario}.js`);
const requireInVu0 = (/** @type {string} */ path) => (__VU === 0 ? require(path) : undefined);
/** @type {typeof import('./lib/prepare.js')} */
const prepare = requireInVu0('./lib/prepare.js');
/** @type {typeof import('./lib/summary.js')} */
const summary = requireInVu0('./lib/summary.js');

export function setup() {
  const prepared = prepare.prepareTarget(env, profile);
  // `lab profile` waits for this line: setup's requests are not part of the load.
  console.info('setup is done, the load begins');
  return prepared;
}

/** @param {Prepared} data */
export default function (data) {
  if (scenario.watch) return scenario.watch(tools, data);
  recordPulse(profile);
  if (profile.cutsOff || profile.mayStopEarly) recordStart();
  const { request, iteration } = scenario;
  return profile.unit === 'requests' && request ? request(tools, data) : iteration(tools, data);
}

/** @param {any} data */
export function handleSummary(data) {
  return summary.buildSummary(env, profile, data);
}
