// @ts-check
// Bookings by clients that retry, and readers, during a fault (tests/faults). Every planned booking
// and every response is a line on the console, which the test compares with the database. All in
// one VU: VUs share no memory, and the bookings are compared with the pages.

import { sendArrivals, waitUntil } from '../../lib/arrivals.js';
import { recordPulse, recordRetry } from '../../lib/metrics.js';
import { buildApi } from '../api.js';
import { REQUESTS } from '../metrics.js';
import { nthBooking } from './booking.js';

/** @typedef {import('../api.js').Api} Api */
/** @typedef {import('../api.js').Text} Text */
/** @typedef {import('../setup.js').HotelData} HotelData */
/** @typedef {import('../../lib/profiles.js').Profile} Profile */

export const requiredProfile = { name: 'hold', because: 'it continues at RATE during the fault' };

// For the retries and the last responses.
export const singleVuOverhead = 120;

export const loadSetup = () => require('../setup.js').buildSetup({ books: 'every hotel' });

/** @type {import('../../lib/scenario').Build<HotelData>} */
export function build(env, profile) {
  const api = buildApi(env, profile);
  return {
    names: [REQUESTS.detail, REQUESTS.booking],
    sendAll: (data) => sendBookingsAndReads(api, profile, data),
  };
}

// Bookings with a response, so that a page without one of them is known to be stale.

/** @typedef {ReturnType<typeof buildMemory>} Memory */
/** @typedef {{ id: string, at: number }} ConfirmedBooking */

export function buildMemory() {
  /** @type {Record<string, ConfirmedBooking[]>} by hotel, in the order of their responses */
  const bookings = {};
  // How many of a hotel's bookings a version of its page contains, counted from the first. The
  // content of a version never changes, and searching a page is this VU's largest cost.
  /** @type {Record<string, number>} */
  const counts = {};

  return {
    /**
     * @param {string} hotel
     * @param {string} id
     * @param {number} at time of the response, Unix time in ms
     */
    addBooking(hotel, id, at) {
      (bookings[hotel] = bookings[hotel] || []).push({ id, at });
    },

    /**
     * Return for how long the page was stale when it was requested, at least: since the response to
     * the first booking that it lacks. 0 if it lacks none.
     * @param {string} hotel
     * @param {string} version of the page, its ETag
     * @param {string} page
     * @param {number} sentAt time of the request, Unix time in ms
     */
    staleMs(hotel, version, page, sentAt) {
      const all = bookings[hotel] || [];
      const key = `${hotel} ${version}`;
      let n = counts[key] || 0;
      while (n < all.length && page.includes(all[n].id)) n++;
      counts[key] = n;
      return n < all.length && all[n].at <= sentAt ? sentAt - all[n].at : 0;
    },
  };
}

// How a client retries: the same request, with growing and random pauses, and a time limit.

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2000;
export const RETRY_LIMIT_MS = 30000;

/**
 * Return whether a retry may succeed: after no response, a server error, too many requests, or
 * while the first attempt with the same key is still running. Any other response is final.
 * @param {number} status 0 without a response
 * @param {string | null} code error code
 */
export function isRetryable(status, code) {
  return (
    status === 0 || status === 429 || status >= 500 || (status === 409 && code === 'in_progress')
  );
}

/**
 * Return the pause before the next attempt: at least Retry-After, and at random up to twice the
 * shortest pause, so that clients that failed together do not retry together.
 * @param {number} attempts attempts so far
 * @param {number | null} retryAfterSeconds the server's Retry-After
 * @param {number} [chance] 0 to 1
 */
export function pauseMs(attempts, retryAfterSeconds, chance = Math.random()) {
  const backoff = Math.min(FIRST_PAUSE_MS * 2 ** (attempts - 1), MAX_PAUSE_MS);
  return Math.max((retryAfterSeconds || 0) * 1000, backoff / 2) * (1 + chance);
}

// For one attempt of a booking, shorter than a hang of the backend. A page request waits for
// CLIENT_TIMEOUT: it is not retried.
const BOOKING_TIMEOUT_MS = 4000;

/**
 * Send RATE bookings and as many page requests per second.
 * @param {Api} api
 * @param {Profile} profile
 * @param {HotelData} data
 */
async function sendBookingsAndReads(api, profile, data) {
  const [startedAt, memory] = [Date.now(), buildMemory()];
  await Promise.all([
    sendArrivals(startedAt, profile, (n) => book(api, data, memory, n)),
    sendArrivals(startedAt, profile, (n) => {
      recordPulse(profile, startedAt);
      return read(api, memory, data.hotels[n % data.hotels.length]);
    }),
  ]);
}

/**
 * @param {Api} api
 * @param {HotelData} data
 * @param {Memory} memory
 * @param {number} n
 */
async function book(api, data, memory, n) {
  const booking = nthBooking(data, n);
  if (!booking || !data.lease) return;
  const key = `${data.testid}-${n}`;
  logRecord({ line: 'wish', key, ...booking });
  const deadline = Date.now() + RETRY_LIMIT_MS;
  for (let attempts = 1; ; attempts++) {
    const sentAt = Date.now();
    const response = describeResponse(
      sentAt,
      await api.tryBooking(booking, key, BOOKING_TIMEOUT_MS),
    );
    logRecord({ line: 'booking', key, ...response });
    if (response.id)
      memory.addBooking(data.lease.hotels[booking.suite], response.id, response.answered);
    const next = Date.now() + pauseMs(attempts, response.retry_after);
    if (!isRetryable(response.status, response.code) || next > deadline) return;
    recordRetry(REQUESTS.booking);
    await waitUntil(next);
  }
}

/**
 * @param {Api} api
 * @param {Memory} memory
 * @param {string} hotel
 */
async function read(api, memory, hotel) {
  const sentAt = Date.now();
  const response = await api.requestHotel(hotel);
  const { id, ...fields } = describeResponse(sentAt, response);
  const { 'X-Cache-Status': cache = null, Etag: version = String(sentAt) } = response.headers;
  const page = String(response.body || '');
  const stale_ms = fields.status === 200 ? memory.staleMs(hotel, version, page, sentAt) : null;
  logRecord({ line: 'page', hotel, ...fields, cache, stale_ms });
}

/**
 * @param {number} sentAt
 * @param {Text} response
 */
function describeResponse(sentAt, response) {
  const { status, headers } = response;
  const after = Number(headers['Retry-After']);
  const body = status === 201 || status >= 400 ? parseJson(response) : {};
  return {
    ...{ asked: sentAt, answered: Date.now(), status },
    ...{ id: status === 201 ? body.id : null, code: body.error ? body.error.code : null },
    ...{ retry_after: after || null, replayed: headers['Idempotency-Replayed'] === 'true' },
  };
}

/**
 * @param {Text} response
 * @returns {any} empty if the body is not JSON
 */
function parseJson(response) {
  try {
    return response.json() || {};
  } catch (_) {
    return {};
  }
}

/** @param {object} record */
function logRecord(record) {
  console.info(JSON.stringify(record));
}
