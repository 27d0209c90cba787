// @ts-check
// The lab's own metrics. k6's remote write adds `k6_` before the name of a
// metric and `_total` after a counter's. A trend as a native histogram gets `_seconds`, otherwise
// one gauge per statistic (`_p95`, also in seconds). In Prometheus the metrics are:
//   k6_lab_cache_status_total{cache_status, name}      responses by X-Cache-Status
//   k6_lab_cache_duration_seconds{cache_status, name}  their durations
//   k6_lab_answers_in_time_total{name}                 successful, within the time limit: goodput
//   k6_lab_scenario_start_seconds                      start of the plan, Unix time
//   k6_lab_target_rate{unit}                           planned arrivals/s at this moment
//   k6_lab_begun_total                                 started requests, if k6 may cut off the last
//   k6_lab_retries_total{name}                         retries of failed requests
// A scenario's own metrics stand next to it.
import exec from 'k6/execution';
import { Counter, Gauge, Trend } from 'k6/metrics';
import { targetRateAt } from './arrivals.js';

// Values of Nginx's X-Cache-Status, and four of the lab's own: REFUSED, a 503 for a page that could
// not be built in time; UNSTORABLE and STORABLE, an answer that is not as the one before the load was
// (load_lab/targets/cache_in_front.py); NONE, a response without the header, or with another value.
export const CACHE_STATUSES = [
  ...['HIT', 'MISS', 'EXPIRED', 'STALE', 'UPDATING', 'REVALIDATED', 'BYPASS', 'SCARCE'],
  ...['REFUSED', 'UNSTORABLE', 'STORABLE', 'NONE'],
];

const cacheStatus = new Counter('lab_cache_status');
const cacheDuration = new Trend('lab_cache_duration', true);
const answersInTime = new Counter('lab_answers_in_time');
const scenarioStart = new Gauge('lab_scenario_start_seconds');
const targetRate = new Gauge('lab_target_rate');
const starts = new Counter('lab_begun');
const retries = new Counter('lab_retries');

/** @type {Record<string, { name: string }>} */
const nameTags = {};

/** @type {Record<string, Record<string, { cache_status: string, name: string }>>} */
const cacheTags = {};

const PULSE_MS = 1000;
let lastPulse = 0;

/**
 * Record a response by its cache status: k6 can't tag its built-in metrics after the response.
 * @param {import('k6/http').Response} response
 * @param {string} name
 * @param {number} boundMs
 * @param {boolean} [success] default: by the status
 */
export function recordResponse(response, name, boundMs, success = isSuccess(response.status)) {
  const { headers, timings } = response;
  const tags = cacheTagsFor(name, headers['X-Cache-Status'] || 'NONE');
  cacheStatus.add(1, tags);
  cacheDuration.add(timings.duration, tags);
  recordInTime(name, success && timings.duration <= boundMs);
}

/** @param {number} status */
export function isSuccess(status) {
  return status >= 200 && status < 400;
}

/**
 * @param {string} name
 * @param {boolean} inTime whether the user got a successful response within the time limit
 */
export function recordInTime(name, inTime) {
  // Adding 0 starts the series before the first success, so that its rate is correct.
  answersInTime.add(inTime ? 1 : 0, nameTagsFor(name));
}

/** @param {string} name */
export function recordRetry(name) {
  retries.add(1, nameTagsFor(name));
}

/** Count the start of a request: k6 records nothing about a request that it cuts off. */
export function recordStart() {
  starts.add(1);
}

/** @param {string} name */
function nameTagsFor(name) {
  return nameTags[name] || (nameTags[name] = { name });
}

/**
 * Return the same object for the same tags: this runs once per request.
 * @param {string} name
 * @param {string} status
 */
function cacheTagsFor(name, status) {
  const byStatus = cacheTags[name] || (cacheTags[name] = {});
  const known = CACHE_STATUSES.includes(status) ? status : 'NONE';
  return byStatus[status] || (byStatus[status] = { cache_status: known, name });
}

/**
 * Record the start of the plan and the current target rate, so that queries can align the offered
 * rate. At most once a second per VU. While every VU waits for the target nothing is sent: the plan
 * in the summary is the reference.
 * @param {import('./profiles.js').Profile} profile
 * @param {number} [startTime] of the plan, Unix time in ms
 */
export function recordPulse(profile, startTime = exec.scenario.startTime) {
  const now = Date.now();
  if (now - lastPulse < PULSE_MS) return;
  lastPulse = now;
  scenarioStart.add(startTime / 1000);
  if (profile.plan === null) return;
  targetRate.add(targetRateAt(profile.plan, (now - startTime) / 1000), { unit: profile.unit });
}
