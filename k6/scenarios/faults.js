// @ts-check
// Bookings by clients that try again, and readers, while something breaks (tests/faults). Every wish
// and every answer is a line on the console, for the test to hold against the database. All in one VU:
// what is booked has to meet what is read, and VUs share no memory.
import { arrivals, until } from '../lib/arriving.js';
import { memoryBuild } from '../lib/memory.js';
import { pulseRecord, retryRecord, REQUESTS } from '../lib/metrics.js';
import { GIVE_UP_MS, pauseMs, worthAgain } from '../lib/patience.js';
import { bookingNth } from './booking.js';

/** @typedef {import('../lib/api.js').Api} Api */
/** @typedef {import('../lib/api.js').Text} Text */
/** @typedef {import('../lib/memory.js').Memory} Memory */
/** @typedef {import('../lib/prepare.js').Prepared} Prepared */
/** @typedef {import('../lib/scenario.js').Tools} Tools */

// For one try of a booking, shorter than a backend that hangs. A page is waited for as long as
// CLIENT_TIMEOUT says: nobody sends the same request beside it.
const BOOKING_TIMEOUT_MS = 4000;

/**
 * RATE bookings and as many pages per second.
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
 * @returns {any} nothing where the body is no JSON
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
