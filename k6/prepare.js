// @ts-check
// The work of setup() for several generators, done once:
// `GENERATORS=4 TESTID=t PREPARED_PATH=$PWD/prepared.json k6 run prepare.js`, then
// `SEGMENT=1/4 TESTID=t PREPARED=$PWD/prepared.json START_AT=… k6 run main.js` and so on.
import { readEnv, rejectForeignVariables } from './lib/env.js';
import { prepareTarget } from './lib/prepare.js';
import { PROFILES, profileFor } from './lib/profiles.js';
import { valueOf } from './lib/summary.js';
import { SCENARIOS } from './scenarios/index.js';

const env = readEnv(__ENV, PROFILES, SCENARIOS);
rejectForeignVariables(__ENV, env.scenario, SCENARIOS);
const scenario = SCENARIOS[env.scenario]();
const profile = profileFor(env, scenario, __ENV);
// Some scenarios find out in here what they need.
scenario.build(env, profile);
const scenarioSetup = scenario.loadSetup();
const path = __ENV.PREPARED_PATH;
if (!path) throw new Error('PREPARED_PATH is not set. Set it to the file for the generators.');

export const options = {
  scenarios: { prepare: { executor: 'per-vu-iterations', vus: 1, iterations: 1 } },
  tags: { testid: env.testid, instance_id: 'prepare' },
  discardResponseBodies: true,
  setupTimeout: '60m',
};

export function setup() {
  return prepareTarget(env, profile, scenarioSetup);
}

export default function () {}

/** @param {any} data */
export function handleSummary({ metrics, setup_data }) {
  if (!setup_data) return {};
  const setupRequests = valueOf(metrics.http_reqs, 'count');
  return { [path]: JSON.stringify({ ...setup_data, setupRequests }) };
}
