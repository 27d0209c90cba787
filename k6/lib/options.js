// @ts-check
import { CACHE_STATUSES, REQUESTS } from './metrics.js';
import { workbenchName } from './workbench.js';

/** @typedef {import('./env.js').Env} Env */
/** @typedef {import('./profiles.js').Profile} Profile */
/** @typedef {import('k6/options').Options} Options */

// Left out of k6's defaults: url, since a hotel's id would make a series of each; group, proto,
// tls_version, subproto and error, which say nothing here that status and error_code do not.
const SYSTEM_TAGS = [
  'status',
  'method',
  'name',
  'scenario',
  'expected_response',
  'error_code',
  'check',
];

/** @type {Record<string, string[]>} */
const SCENARIO_REQUESTS = {
  journey: Object.values(REQUESTS),
  list: [REQUESTS.list],
  detail: [REQUESTS.detail],
  booking: [REQUESTS.booking],
  staleness: [REQUESTS.detail, REQUESTS.booking],
  availability: [REQUESTS.booking],
  faults: [REQUESTS.detail, REQUESTS.booking],
};

/**
 * @param {Env} env
 * @param {Profile} profile
 * @returns {Options}
 */
export function optionsBuild(env, profile) {
  return {
    scenarios: { [env.scenario]: scenarioBuild(env, profile) },
    thresholds: { ...submetrics(env), ...thresholdsFor(profile) },
    tags: { testid: env.testid },
    systemTags: /** @type {any} */ (SYSTEM_TAGS),
    summaryTrendStats: ['min', 'avg', 'p(50)', 'p(90)', 'p(95)', 'p(99)', 'max', 'count'],
    discardResponseBodies: true,
    // setup reads every hotel's detail, which the slowest settings answer in seconds.
    setupTimeout: '5m',
  };
}

/**
 * @param {Env} env
 * @param {Profile} profile
 */
function scenarioBuild(env, profile) {
  const { executor } = profile;
  if (profile.unit !== 'requests' || profile.cutsOff) return executor;
  // k6 forgets a request that it cuts off, and at the end of a breakpoint those are the slowest.
  const waiting = { ...executor, gracefulStop: `${env.clientTimeoutMs + 1000}ms` };
  return profile.mayStopEarly ? { ...waiting, env: { EARLY_STOP: planText(profile) } } : waiting;
}

/**
 * The plan as `k6 inspect` prints it: `lab` reads it before the run, to find the break during it.
 * @param {Profile} profile
 */
function planText({ unit, plan }) {
  return JSON.stringify({ unit, plan });
}

/**
 * The smoke test is a test of the target; the other profiles measure, and judge nothing.
 * @param {Profile} profile
 * @returns {Record<string, string[]>}
 */
function thresholdsFor(profile) {
  if (profile.name !== 'smoke') return {};
  return { http_req_failed: ['rate==0'], checks: ['rate==1'] };
}

/**
 * k6's summary holds a metric by tag only where a threshold names it; an empty one never fails.
 * The scenario's own figures leave out what setup asked for.
 * @param {Env} env
 * @returns {Record<string, string[]>}
 */
function submetrics({ scenario, route }) {
  const names = SCENARIO_REQUESTS[scenario] || [workbenchName(route)];
  const tags = [`scenario:${scenario}`, ...names.map((name) => `name:${name}`)];
  const keys = tags.flatMap((tag) => [
    `http_reqs{${tag}}`,
    `http_req_failed{${tag}}`,
    `http_req_duration{${tag}}`,
  ]);
  keys.push(`http_req_duration{scenario:${scenario},expected_response:true}`);
  if (scenario !== 'workbench') {
    keys.push(...CACHE_STATUSES.map((status) => `lab_cache_status{cache_status:${status}}`));
  }
  return Object.fromEntries(keys.map((key) => [key, []]));
}
