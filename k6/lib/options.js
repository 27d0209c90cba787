// @ts-check
import { CACHE_STATUSES } from './metrics.js';

/** @typedef {import('./env.js').Env} Env */
/** @typedef {import('./profiles.js').Profile} Profile */
/** @typedef {import('k6/options').Options} Options */

// k6's defaults without url (a series for each address), and without group, proto, tls_version, subproto
// and error, which add nothing here to status and error_code.
const SYSTEM_TAGS = [
  'status',
  'method',
  'name',
  'scenario',
  'expected_response',
  'error_code',
  'check',
];

/**
 * @param {Env} env
 * @param {Profile} profile
 * @param {string[]} names values of the tag `name` that the summary reports separately
 * @returns {Options}
 */
export function buildOptions(env, profile, names) {
  return {
    scenarios: { [env.scenario]: buildScenario(env, profile) },
    thresholds: { ...submetrics(env.scenario, names), ...thresholdsFor(profile) },
    ...segmentOptions(env),
    tags: tagsOf(env),
    systemTags: /** @type {any} */ (SYSTEM_TAGS),
    summaryTrendStats: ['min', 'avg', 'p(50)', 'p(90)', 'p(95)', 'p(99)', 'max', 'count'],
    discardResponseBodies: true,
    // setup() may create thousands of objects, each of which may take a second.
    setupTimeout: '60m',
  };
}

/**
 * Return k6's options for a generator's part of the arrivals.
 * @param {Env} env
 */
function segmentOptions({ generator, generators }) {
  if (generator === 0) return {};
  const points = Array.from({ length: generators + 1 }, (_, i) => `${i}/${generators}`);
  return {
    executionSegment: `${points[generator - 1]}:${points[generator]}`,
    executionSegmentSequence: points.join(','),
  };
}

/**
 * Without the second tag, the series of generators would overwrite each other. Its name is that of
 * k6-operator.
 * @param {Env} env
 * @returns {Record<string, string>}
 */
function tagsOf({ testid, generator }) {
  return generator === 0 ? { testid } : { testid, instance_id: `${generator}` };
}

/**
 * @param {Env} env
 * @param {Profile} profile
 */
function buildScenario(env, profile) {
  const { executor } = profile;
  if (profile.unit !== 'requests' || profile.cutsOff) return executor;
  // k6 does not record a request that it cuts off: at a breakpoint's end, the slowest ones.
  const waiting = { ...executor, gracefulStop: `${env.clientTimeoutMs + 1000}ms` };
  return profile.mayStopEarly ? { ...waiting, env: { EARLY_STOP: planText(profile) } } : waiting;
}

/**
 * Return the plan as JSON for `k6 inspect`: `lab` reads it before the run, to find the break point
 * during the run.
 * @param {Profile} profile
 */
function planText({ unit, plan }) {
  return JSON.stringify({ unit, plan });
}

/**
 * The smoke test checks the target; the other profiles only measure.
 * @param {Profile} profile
 * @returns {Record<string, string[]>}
 */
function thresholdsFor(profile) {
  if (profile.name !== 'smoke') return {};
  return { http_req_failed: ['rate==0'], checks: ['rate==1'] };
}

/**
 * Return empty thresholds, which never fail: k6's summary contains a metric by tag only if a
 * threshold names it. The tag `scenario` excludes setup's requests.
 * @param {string} scenario
 * @param {string[]} names
 * @returns {Record<string, string[]>}
 */
function submetrics(scenario, names) {
  const tags = [`scenario:${scenario}`, ...names.map((name) => `name:${name}`)];
  const keys = tags.flatMap((tag) => [
    `http_reqs{${tag}}`,
    `http_req_failed{${tag}}`,
    `http_req_duration{${tag}}`,
  ]);
  keys.push(`http_req_duration{scenario:${scenario},expected_response:true}`);
  keys.push(...CACHE_STATUSES.map((status) => `lab_cache_status{cache_status:${status}}`));
  return Object.fromEntries(keys.map((key) => [key, []]));
}
