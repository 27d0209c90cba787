// @ts-check
// WebSockets that watch hotels, and bookings that must reach every watcher of their hotel. All in
// one VU: VUs share no memory, and the bookings' ids are compared with the messages' ids.
import exec from 'k6/execution';
import { clearInterval, setInterval } from 'k6/timers';
import { OPENING_MS, arrivals, until } from '../lib/arrivals.js';
import { pulseRecord } from '../lib/metrics.js';
import {
  connectionsRecord,
  hotelsInTurn,
  messageRecord,
  socketUrl,
  socketsBuild,
  tallyBuild,
  totalsRecord,
} from '../lib/sockets.js';
import { bookingNth } from './booking.js';

/** @typedef {import('../lib/api.js').Api} Api */
/** @typedef {import('../lib/env.js').Env} Env */
/** @typedef {import('../lib/prepare.js').Prepared} Prepared */
/** @typedef {import('../lib/profiles.js').Profile} Profile */
/** @typedef {import('../lib/scenario.js').Tools} Tools */
/** @typedef {import('../lib/sockets.js').Tally} Tally */

const PULSE_MS = 1000;
// Messages count as lost when none has arrived for QUIET_MS, and after LATE_MS at the latest.
const QUIET_MS = 5000;
const LATE_MS = 30000;
const LATE_POLL_MS = 250;
// A duplicate arrives soon after the first message.
const DOUBLES_MS = 1000;

/**
 * @param {Tools} tools
 * @param {Prepared} data
 */
export async function watch({ api, env, profile }, data) {
  const watched = hotelsInTurn(data.hotels, env.connections);
  const tally = tallyBuild(watched);
  const urls = watched.map((hotel) => socketUrl(env.baseUrl, hotel));
  const sockets = socketsBuild(urls, (socket, { booking, committed_at }, receivedMs) => {
    tally.received(socket, booking);
    messageRecord(receivedMs - committed_at * 1000);
  });
  await sockets.open(OPENING_MS);
  if (sockets.held() === 0) noneReady(env, sockets.problem());
  const seconds = await load(profile, sockets.held, (n) => book(api, data, tally, n));
  await lateMessages(tally, sockets.held);
  totalsRecord(tally.counts(), env.connections - sockets.held(), seconds);
  sockets.close();
}

/**
 * @param {Profile} profile
 * @param {() => number} held
 * @param {(n: number) => Promise<void>} send
 * @returns {Promise<number>} seconds until the last response or the end of the plan, the later
 */
async function load(profile, held, send) {
  const startedAt = Date.now();
  const beat = () => {
    pulseRecord(profile, startedAt);
    connectionsRecord(held());
  };
  beat();
  const pulse = setInterval(beat, PULSE_MS);
  await arrivals(startedAt, profile, send);
  clearInterval(pulse);
  return (Date.now() - startedAt) / 1000;
}

/**
 * @param {Api} api
 * @param {Prepared} data
 * @param {Tally} tally
 * @param {number} n
 */
async function book(api, data, tally, n) {
  const booking = bookingNth(data, n);
  const id = booking && (await api.bookingSend(booking));
  if (id && booking && data.lease) tally.booked(id, data.lease.hotels[booking.suite]);
}

/**
 * @param {Tally} tally
 * @param {() => number} held
 */
async function lateMessages(tally, held) {
  const givenUpAt = Date.now() + LATE_MS;
  let { lost } = tally.counts();
  let changedAt = Date.now();
  while (lost && held() && Date.now() < Math.min(givenUpAt, changedAt + QUIET_MS)) {
    await until(Date.now() + LATE_POLL_MS);
    const now = tally.counts().lost;
    if (now < lost) changedAt = Date.now();
    lost = now;
  }
  await until(Date.now() + DOUBLES_MS);
}

/**
 * @param {Env} env
 * @param {string} problem
 */
function noneReady({ connections }, problem) {
  exec.test.abort(
    `None of ${connections} WebSockets was ready within ${OPENING_MS / 1000} s (${problem}). ` +
      'Start the target with LAB_WEBSOCKETS=on, and a server that speaks ASGI.',
  );
}
