// @ts-check
// Names of requests and of our own metrics. k6's remote write puts `k6_` before a metric and
// `_total` behind a counter; a trend in native histograms gets `_seconds`, else one gauge per
// statistic (`_p95`, in seconds as well). In Prometheus these are therefore:
//   k6_lab_cache_status_total{cache_status, name}      answers by X-Cache-Status
//   k6_lab_cache_duration_seconds{cache_status, name}  their times
//   k6_lab_answers_in_time_total{name}                 successful ones within the bound: goodput
//   k6_lab_scenario_start_seconds                      when the plan began, Unix time
//   k6_lab_target_rate{unit}                           arrivals/s that the plan asks for now
//   k6_lab_staleness_seconds                           from a booking's 201 to a page that shows it
//   k6_lab_staleness_unseen_total                      bookings that no page showed within the bound
//   k6_lab_bookings_created_total, k6_lab_bookings_conflicted_total
//   k6_lab_begun_total                                 users' requests begun, where the end cuts off
//   k6_lab_retries_total{name}                         failed requests that are sent again
// Those of the WebSockets: socket-metrics.js.
import exec from 'k6/execution';
import { Counter, Gauge, Trend } from 'k6/metrics';
import { targetRateAt } from './arrivals.js';

export const REQUESTS = {
  list: 'hotel_list',
  detail: 'hotel_detail',
  booking: 'booking_create',
};

// What Nginx may say in X-Cache-Status; NONE is ours, for an answer without the header.
export const CACHE_STATUSES = [
  ...['HIT', 'MISS', 'EXPIRED', 'STALE', 'UPDATING', 'REVALIDATED', 'BYPASS', 'SCARCE', 'NONE'],
];

const cacheStatus = new Counter('lab_cache_status');
const cacheDuration = new Trend('lab_cache_duration', true);
const answersInTime = new Counter('lab_answers_in_time');
const scenarioStart = new Gauge('lab_scenario_start_seconds');
const targetRate = new Gauge('lab_target_rate');
const staleness = new Trend('lab_staleness', true);
const stalenessUnseen = new Counter('lab_staleness_unseen');
const bookingsCreated = new Counter('lab_bookings_created');
const bookingsConflicted = new Counter('lab_bookings_conflicted');
const begun = new Counter('lab_begun');
const retries = new Counter('lab_retries');

/** @type {Record<string, { name: string }>} */
const nameTags = {};

/** @type {Record<string, Record<string, { cache_status: string, name: string }>>} */
const cacheTags = {};

const PULSE_MS = 1000;
let pulseLast = 0;

/**
 * k6 can't tag its built-in metrics after the answer, so what a header says is counted here.
 * @param {import('k6/http').Response} response
 * @param {string} name
 * @param {number} boundMs
 */
export function answerRecord(response, name, boundMs) {
  const tags = cacheTagsFor(name, response.headers['X-Cache-Status'] || 'NONE');
  cacheStatus.add(1, tags);
  cacheDuration.add(response.timings.duration, tags);
  inTimeRecord(response, name, boundMs);
}

/**
 * @param {import('k6/http').Response} response
 * @param {string} name
 * @param {number} boundMs
 * @param {number} earlierMs that the user has waited already, for tries that failed
 */
export function inTimeRecord({ status, timings }, name, boundMs, earlierMs = 0) {
  const inTime = status >= 200 && status < 400 && earlierMs + timings.duration <= boundMs;
  // Adding 0 lets the series begin before the first success, so that its rate is right.
  answersInTime.add(inTime ? 1 : 0, nameTagsFor(name));
}

/** @param {string} name */
export function retryRecord(name) {
  retries.add(1, nameTagsFor(name));
}

/** k6 forgets a request that it cuts off: it is known by its beginning alone. */
export function begunRecord() {
  begun.add(1);
}

/** @param {string} name */
function nameTagsFor(name) {
  return nameTags[name] || (nameTags[name] = { name });
}

/**
 * The same object each time: this runs once per request.
 * @param {string} name
 * @param {string} status
 */
function cacheTagsFor(name, status) {
  const byStatus = cacheTags[name] || (cacheTags[name] = {});
  return byStatus[status] || (byStatus[status] = { cache_status: status, name });
}

/** @param {number} status of the answer to a booking */
export function bookingRecord(status) {
  if (status === 201) bookingsCreated.add(1);
  if (status === 409) bookingsConflicted.add(1);
}

/** @param {number | null} ms until the booking was seen; null when it was not */
export function stalenessRecord(ms) {
  // Adding 0 lets the series begin before the first that is not seen.
  stalenessUnseen.add(ms === null ? 1 : 0);
  if (ms !== null) staleness.add(ms);
}

/**
 * Lets whoever reads the series align the offered rate. At most once a second per VU. When every
 * VU waits for the target nothing is sent: the plan in the summary is the reference.
 * @param {import('./profiles.js').Profile} profile
 * @param {number} [startTime] at which the plan began, Unix time in ms
 */
export function pulseRecord(profile, startTime = exec.scenario.startTime) {
  const now = Date.now();
  if (now - pulseLast < PULSE_MS) return;
  pulseLast = now;
  scenarioStart.add(startTime / 1000);
  if (profile.plan === null) return;
  targetRate.add(targetRateAt(profile.plan, (now - startTime) / 1000), { unit: profile.unit });
}
