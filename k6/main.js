// @ts-check
// Load on the hotel API. `k6 run main.js` is the smoke test; README.md lists the variables.
import { apiBuild } from './lib/api.js';
import { envRead } from './lib/env.js';
import { begunRecord, pulseRecord } from './lib/metrics.js';
import { optionsBuild } from './lib/options.js';
import { PROFILES, profileFor } from './lib/profiles.js';

/** @typedef {import('./lib/prepare.js').Prepared} Prepared */
/** @typedef {import('./lib/scenario.js').Scenario} Scenario */

const env = envRead(__ENV, PROFILES);
const profile = profileFor(env, __ENV);
const tools = { api: apiBuild(env, profile), env, profile };

export const options = optionsBuild(env, profile);

// Each VU has a copy of every module that it loads, so it loads only its own scenario; setup and
// summary run in VU 0. With 1,000 VUs this saves 300 MB, and a third of the CPU time to start them.
/** @type {Scenario} */
const scenario = require(`./scenarios/${env.scenario}.js`);
const inFirst = (/** @type {string} */ path) => (__VU === 0 ? require(path) : undefined);
/** @type {typeof import('./lib/prepare.js')} */
const prepare = inFirst('./lib/prepare.js');
/** @type {typeof import('./lib/summary.js')} */
const summary = inFirst('./lib/summary.js');

export function setup() {
  const prepared = prepare.targetPrepare(env, profile);
  // `lab profile` waits for this line: setup's requests are not part of the load.
  console.info('setup is done, the load begins');
  return prepared;
}

/** @param {Prepared} data */
export default function (data) {
  if (scenario.watch) return scenario.watch(tools, data);
  pulseRecord(profile);
  if (profile.cutsOff || profile.mayStopEarly) begunRecord();
  const { request, iteration } = scenario;
  return profile.unit === 'requests' && request ? request(tools, data) : iteration(tools, data);
}

/** @param {any} data */
export function handleSummary(data) {
  return summary.summaryBuild(env, profile, data);
}
