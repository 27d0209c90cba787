// @ts-check
// `k6 run main.js` is the smoke test; README.md lists the variables.
import { pause } from './lib/arrivals.js';
import { readEnv, rejectForeignVariables } from './lib/env.js';
import { recordPulse, recordStart } from './lib/metrics.js';
import { buildOptions } from './lib/options.js';
import { PROFILES, profileFor } from './lib/profiles.js';
import { SCENARIOS } from './scenarios/index.js';

/** @typedef {import('./lib/prepare.js').Prepared} Prepared */

const env = readEnv(__ENV, PROFILES, SCENARIOS);
const scenario = SCENARIOS[env.scenario]();
const profile = profileFor(env, scenario, __ENV);
const requests = scenario.build(env, profile);

export const options = buildOptions(env, profile, requests.names);

// Setup and summary run in VU 0. Only this VU loads their modules, for the reason in
// scenarios/index.js.
const inVu0 = (/** @type {() => any} */ load) => (__VU === 0 ? load() : undefined);
inVu0(() => rejectForeignVariables(__ENV, env.scenario, SCENARIOS));
/** @type {import('./lib/scenario').Setup} */
const scenarioSetup = inVu0(scenario.loadSetup);
/** @type {typeof import('./lib/prepare.js')} */
const prepare = inVu0(() => require('./lib/prepare.js'));
/** @type {typeof import('./lib/summary.js')} */
const summary = inVu0(() => require('./lib/summary.js'));

/** @type {Prepared | undefined} */
const given = inVu0(() => env.preparedPath && JSON.parse(open(env.preparedPath)));

export function setup() {
  const startedAt = Date.now();
  const prepared = given
    ? prepare.requirePreparedLoad(env, profile, given)
    : prepare.prepareTarget(env, profile, scenarioSetup);
  prepare.waitForStart(env);
  // `lab profile` waits for this line: setup's requests are not part of the load.
  console.info('setup is done, the load begins');
  return { ...prepared, setupSeconds: (Date.now() - startedAt) / 1000 };
}

/** @param {Prepared} data */
export default function (data) {
  if (requests.sendAll) return requests.sendAll(data);
  recordPulse(profile);
  if (profile.cutsOff || profile.mayStopEarly) recordStart();
  if (profile.unit === 'requests' && requests.request) return requests.request(data);
  visit(data);
}

/** @param {Prepared} data */
function visit(data) {
  if (requests.iteration) return requests.iteration(data);
  if (requests.request) requests.request(data);
  pause();
}

/** @param {any} data */
export function handleSummary(data) {
  return summary.buildSummary(env, profile, scenarioSetup, data);
}
