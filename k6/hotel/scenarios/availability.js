// @ts-check
// WebSockets that watch hotels, and bookings that must reach every watcher of their hotel. All in
// one VU: VUs share no memory, and the bookings' ids are compared with the messages' ids.
import exec from 'k6/execution';
import { clearInterval, setInterval } from 'k6/timers';
import { sendArrivals, waitUntil } from '../../lib/arrivals.js';
import { readInteger } from '../../lib/env.js';
import { recordPulse } from '../../lib/metrics.js';
import { buildApi } from '../api.js';
import { REQUESTS } from '../metrics.js';
import {
  buildSockets,
  buildTally,
  recordConnections,
  recordMessage,
  recordTotals,
  rotateHotels,
  socketUrl,
} from '../sockets.js';
import { nthBooking } from './booking.js';

/** @typedef {import('../api.js').Api} Api */
/** @typedef {import('../setup.js').HotelData} HotelData */
/** @typedef {import('../sockets.js').Tally} Tally */
/** @typedef {import('../../lib/env.js').Env} Env */
/** @typedef {import('../../lib/profiles.js').Profile} Profile */

export const variables = ['CONNECTIONS'];

/** @param {import('../../lib/env.js').Variables} values */
export function readOptions(values) {
  return { connections: readInteger(values, 'CONNECTIONS', 100, 1, 20000) };
}

export const requiredProfile = {
  name: 'hold',
  because: 'it sends bookings at RATE, whatever happens to the sockets',
};

// Time limit for opening all WebSockets together: a server accepts about a hundred per second.
const OPENING_SECONDS = 60;
// Also for the last responses and messages, and for closing.
export const singleVuOverhead = OPENING_SECONDS + 60;

export const loadSetup = () => require('../setup.js').buildSetup({ books: 'every hotel' });

/** @type {import('../../lib/scenario').Build<HotelData>} */
export function build(env, profile) {
  const api = buildApi(env, profile);
  return { names: [REQUESTS.booking], sendAll: (data) => watchSockets(api, env, profile, data) };
}

const PULSE_MS = 1000;
// Messages count as lost when none has arrived for QUIET_MS, and after LATE_MS at the latest.
const QUIET_MS = 5000;
const LATE_MS = 30000;
const LATE_POLL_MS = 250;
// A duplicate arrives soon after the first message.
const DUPLICATES_MS = 1000;

/**
 * @param {Api} api
 * @param {Env} env
 * @param {Profile} profile
 * @param {HotelData} data
 */
async function watchSockets(api, env, profile, data) {
  const { connections } = env.options;
  const hotels = rotateHotels(data.hotels, connections);
  const tally = buildTally(hotels);
  const urls = hotels.map((hotel) => socketUrl(env.baseUrl, hotel));
  const sockets = buildSockets(urls, (socket, { booking, committed_at }, receivedMs) => {
    tally.addMessage(socket, booking);
    recordMessage(receivedMs - committed_at * 1000);
  });
  await sockets.open(OPENING_SECONDS * 1000);
  if (sockets.readyCount() === 0) abortWithoutSockets(connections, sockets.firstError());
  const seconds = await load(profile, sockets.readyCount, (n) => book(api, data, tally, n));
  await waitForLateMessages(tally, sockets.readyCount);
  recordTotals(tally.counts(), connections - sockets.readyCount(), seconds);
  sockets.close();
}

/**
 * @param {Profile} profile
 * @param {() => number} readyCount
 * @param {(n: number) => Promise<void>} send
 * @returns {Promise<number>} seconds until the last response or the end of the plan, the later
 */
async function load(profile, readyCount, send) {
  const startedAt = Date.now();
  const recordBeat = () => {
    recordPulse(profile, startedAt);
    recordConnections(readyCount());
  };
  recordBeat();
  const pulse = setInterval(recordBeat, PULSE_MS);
  await sendArrivals(startedAt, profile, send);
  clearInterval(pulse);
  return (Date.now() - startedAt) / 1000;
}

/**
 * @param {Api} api
 * @param {HotelData} data
 * @param {Tally} tally
 * @param {number} n
 */
async function book(api, data, tally, n) {
  const booking = nthBooking(data, n);
  const id = booking && (await api.sendBooking(booking));
  if (id && booking && data.lease) tally.addBooking(id, data.lease.hotels[booking.suite]);
}

/**
 * @param {Tally} tally
 * @param {() => number} readyCount
 */
async function waitForLateMessages(tally, readyCount) {
  const deadline = Date.now() + LATE_MS;
  let { lost } = tally.counts();
  let changedAt = Date.now();
  while (lost && readyCount() && Date.now() < Math.min(deadline, changedAt + QUIET_MS)) {
    await waitUntil(Date.now() + LATE_POLL_MS);
    const now = tally.counts().lost;
    if (now < lost) changedAt = Date.now();
    lost = now;
  }
  await waitUntil(Date.now() + DUPLICATES_MS);
}

/**
 * @param {number} connections
 * @param {string} firstError
 */
function abortWithoutSockets(connections, firstError) {
  exec.test.abort(
    `None of the ${connections} WebSockets was ready within ${OPENING_SECONDS} s (${firstError}). ` +
      'Start the target with LAB_WEBSOCKETS=on, and an ASGI server.',
  );
}
