// @ts-check
// Bookings by clients that retry, and readers, during a fault (tests/faults). Every planned booking
// and every response is a line on the console, which the test compares with the database. All in
// one VU: VUs share no memory, and the bookings are compared with the pages.

import { arrivals, until } from '../lib/arrivals.js';
import { REQUESTS, pulseRecord, retryRecord } from '../lib/metrics.js';
import { bookingNth } from './booking.js';

// Bookings with a response, so that a page without one of them is known to be stale.

/** @typedef {ReturnType<typeof memoryBuild>} Memory */
/** @typedef {{ id: string, at: number }} Booked */

export function memoryBuild() {
  /** @type {Record<string, Booked[]>} by hotel, in the order of their responses */
  const booked = {};
  // How many of a hotel's bookings a version of its page contains, counted from the first. The
  // content of a version never changes, and searching a page is this VU's largest cost.
  /** @type {Record<string, number>} */
  const has = {};

  return {
    /**
     * @param {string} hotel
     * @param {string} id
     * @param {number} at time of the response, Unix time in ms
     */
    booked(hotel, id, at) {
      (booked[hotel] = booked[hotel] || []).push({ id, at });
    },

    /**
     * Return for how long the page was stale when it was requested, at least: since the response to
     * the first booking that it lacks. 0 if it lacks none.
     * @param {string} hotel
     * @param {string} version of the page, its ETag
     * @param {string} page
     * @param {number} asked time of the request, Unix time in ms
     */
    staleMs(hotel, version, page, asked) {
      const all = booked[hotel] || [];
      const known = `${hotel} ${version}`;
      let n = has[known] || 0;
      while (n < all.length && page.includes(all[n].id)) n++;
      has[known] = n;
      return n < all.length && all[n].at <= asked ? asked - all[n].at : 0;
    },
  };
}

// How a careful client retries: the same request, with growing and random pauses, and a time limit.

const FIRST_MS = 100;
const LONGEST_MS = 2000;
export const GIVE_UP_MS = 30000;

/**
 * Return whether a retry may succeed: after no response, a server error, too many requests, or
 * while the first attempt with the same key is still running. Any other response is final.
 * @param {number} status 0 without a response
 * @param {string | null} code error code
 */
export function worthAgain(status, code) {
  return (
    status === 0 || status === 429 || status >= 500 || (status === 409 && code === 'in_progress')
  );
}

/**
 * Return the pause before the next attempt: at least Retry-After, and at random up to twice the
 * shortest pause, so that clients that failed together do not retry together.
 * @param {number} tries attempts so far
 * @param {number | null} retryAfterSeconds the server's Retry-After
 * @param {number} [chance] 0 to 1
 */
export function pauseMs(tries, retryAfterSeconds, chance = Math.random()) {
  const backoff = Math.min(FIRST_MS * 2 ** (tries - 1), LONGEST_MS);
  return Math.max((retryAfterSeconds || 0) * 1000, backoff / 2) * (1 + chance);
}

/** @typedef {import('../lib/api.js').Api} Api */
/** @typedef {import('../lib/api.js').Text} Text */
/** @typedef {import('../lib/prepare.js').Prepared} Prepared */
/** @typedef {import('../lib/scenario.js').Tools} Tools */

// For one attempt of a booking, shorter than a hang of the backend. A page request waits for
// CLIENT_TIMEOUT: it is not retried.
const BOOKING_TIMEOUT_MS = 4000;

/**
 * Send RATE bookings and as many page requests per second.
 * @param {Tools} tools
 * @param {Prepared} data
 */
export async function watch({ api, profile }, data) {
  const [startedAt, memory] = [Date.now(), memoryBuild()];
  await Promise.all([
    arrivals(startedAt, profile, (n) => book(api, data, memory, n)),
    arrivals(startedAt, profile, (n) => {
      pulseRecord(profile, startedAt);
      return read(api, memory, data.hotels[n % data.hotels.length]);
    }),
  ]);
}

/**
 * @param {Api} api
 * @param {Prepared} data
 * @param {Memory} memory
 * @param {number} n
 */
async function book(api, data, memory, n) {
  const wish = bookingNth(data, n);
  if (!wish || !data.lease) return;
  const key = `${data.testid}-${n}`;
  note({ line: 'wish', key, ...wish });
  const givenUpAt = Date.now() + GIVE_UP_MS;
  for (let tries = 1; ; tries++) {
    const asked = Date.now();
    const found = answerOf(asked, await api.bookingTry(wish, key, BOOKING_TIMEOUT_MS));
    note({ line: 'booking', key, ...found });
    if (found.id) memory.booked(data.lease.hotels[wish.suite], found.id, found.answered);
    const next = Date.now() + pauseMs(tries, found.retry_after);
    if (!worthAgain(found.status, found.code) || next > givenUpAt) return;
    retryRecord(REQUESTS.booking);
    await until(next);
  }
}

/**
 * @param {Api} api
 * @param {Memory} memory
 * @param {string} hotel
 */
async function read(api, memory, hotel) {
  const asked = Date.now();
  const response = await api.hotelAsk(hotel);
  const { id, ...found } = answerOf(asked, response);
  const { 'X-Cache-Status': cache = null, Etag: version = String(asked) } = response.headers;
  const page = String(response.body || '');
  const stale_ms = found.status === 200 ? memory.staleMs(hotel, version, page, asked) : null;
  note({ line: 'page', hotel, ...found, cache, stale_ms });
}

/**
 * @param {number} asked
 * @param {Text} response
 */
function answerOf(asked, response) {
  const { status, headers } = response;
  const after = Number(headers['Retry-After']);
  const body = status === 201 || status >= 400 ? jsonOf(response) : {};
  return {
    ...{ asked, answered: Date.now(), status },
    ...{ id: status === 201 ? body.id : null, code: body.error ? body.error.code : null },
    ...{ retry_after: after || null, replayed: headers['Idempotency-Replayed'] === 'true' },
  };
}

/**
 * @param {Text} response
 * @returns {any} empty if the body is not JSON
 */
function jsonOf(response) {
  try {
    return response.json() || {};
  } catch (_) {
    return {};
  }
}

/** @param {object} record */
function note(record) {
  console.info(JSON.stringify(record));
}
