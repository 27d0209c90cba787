// @ts-check
// WebSockets of one VU, opened a few at a time and held open. A socket that closes is not opened
// again: its later messages are lost.

import { Counter, Gauge, Trend } from 'k6/metrics';
import { clearTimeout, setTimeout } from 'k6/timers';
import { WebSocket } from 'k6/websockets';

// The lab's own WebSocket metrics; names in Prometheus as in metrics.js:
//   k6_lab_ws_connections          sockets that are open and ready
//   k6_lab_ws_messages_total       messages about bookings that they received
//   k6_lab_ws_delay_seconds        from a booking's commit to its message
//   k6_lab_ws_expected_total       messages due to sockets for bookings; this metric and the
//                                  following are known, and sent, when the run ends
//   k6_lab_ws_lost_total, k6_lab_ws_doubled_total   messages never received; received again
//   k6_lab_ws_other_total          messages of another hotel, or not of this run's bookings
//   k6_lab_ws_closed_total         sockets that were not open until the end

const connections = new Gauge('lab_ws_connections');
const messages = new Counter('lab_ws_messages');
const delay = new Trend('lab_ws_delay', true);
const expected = new Counter('lab_ws_expected');
const lost = new Counter('lab_ws_lost');
const doubled = new Counter('lab_ws_doubled');
const other = new Counter('lab_ws_other');
const closed = new Counter('lab_ws_closed');
const loadSeconds = new Gauge('lab_load_seconds');

/** @param {number} open */
export function connectionsRecord(open) {
  connections.add(open);
}

/** @param {number} delayMs between two clocks: the backend's at the commit, k6's at the receipt */
export function messageRecord(delayMs) {
  messages.add(1);
  delay.add(delayMs);
}

/**
 * @param {Counts} counts
 * @param {number} socketsClosed
 * @param {number} seconds from the first booking to the last response
 */
export function totalsRecord(counts, socketsClosed, seconds) {
  // Record zeros as well: "no message was lost" is a measurement.
  messages.add(0);
  expected.add(counts.expected);
  lost.add(counts.lost);
  doubled.add(counts.doubled);
  other.add(counts.other);
  closed.add(socketsClosed);
  loadSeconds.add(seconds);
}

// The messages due to each socket and the messages received, by booking id. So the count is exact
// while other clients book, and whether a message or the booking's response arrives first.

/** @typedef {{ expected: number, lost: number, doubled: number, other: number }} Counts */
/** @typedef {ReturnType<typeof tallyBuild>} Tally */

/** @param {string[]} watched hotel of each socket */
export function tallyBuild(watched) {
  /** @type {Map<string, string>} hotel of each booking, by booking id */
  const bookings = new Map();
  /** @type {Set<string>[]} ids of the bookings that each socket received */
  const told = watched.map(() => new Set());
  let doubled = 0;

  return {
    /**
     * @param {string} id
     * @param {string} hotel
     */
    booked(id, hotel) {
      bookings.set(id, hotel);
    },

    /**
     * @param {number} socket
     * @param {string} id
     */
    received(socket, id) {
      if (told[socket].has(id)) doubled += 1;
      else told[socket].add(id);
    },

    /** @returns {Counts} */
    counts() {
      const expected = owed(watched, bookings);
      const all = told.reduce((sum, ids) => sum + ids.size, 0);
      const due = told.reduce((sum, ids, socket) => sum + dueOf(ids, watched[socket]), 0);
      return { expected, lost: expected - due, doubled, other: all - due };
    },
  };

  /**
   * @param {Set<string>} ids
   * @param {string} hotel
   */
  function dueOf(ids, hotel) {
    let due = 0;
    for (const id of ids) if (bookings.get(id) === hotel) due += 1;
    return due;
  }
}

/**
 * @param {string[]} watched
 * @param {Map<string, string>} bookings
 */
function owed(watched, bookings) {
  /** @type {Map<string, number>} */
  const watchers = new Map();
  for (const hotel of watched) watchers.set(hotel, (watchers.get(hotel) || 0) + 1);
  let messages = 0;
  for (const hotel of bookings.values()) messages += watchers.get(hotel) || 0;
  return messages;
}

/** @typedef {ReturnType<typeof socketsBuild>} Sockets */

// Servers queue only a few connections that they have not accepted yet.
const OPENING_AT_ONCE = 50;

// k6 drops a message that it reads before it sets its socket to open (readyState, in
// internal/js/modules/k6/websockets), and `ready` may arrive with the handshake's response. So the
// client requests it once the socket is open; a socket that stays silent is replaced.
const READY_ASK = 'ready?';
const PATIENCE_MS = 5000;

/**
 * @param {string[]} urls
 * @param {(socket: number, message: any, at: number) => void} received a booking's message, and
 *   when it was read, Unix time in ms
 */
export function socketsBuild(urls, received) {
  /** @type {WebSocket[]} */
  const sockets = [];
  /** @type {Set<number>} */
  const ready = new Set();
  let begun = 0;
  let over = false;
  let problem = '';

  return {
    /**
     * Resolves when each socket is ready or has failed, after at most `timeoutMs`.
     * @param {number} timeoutMs
     */
    async open(timeoutMs) {
      /** @type {any} */
      let timer;
      const late = new Promise((resolve) => (timer = setTimeout(resolve, timeoutMs)));
      const openers = Array.from({ length: OPENING_AT_ONCE }, openInTurn);
      await Promise.race([late, Promise.all(openers)]);
      over = true;
      clearTimeout(timer);
    },
    /** Return the number of sockets that are open and ready. */
    held: () => ready.size,
    /** Return the reason of the first failure. */
    problem: () => problem,
    close() {
      // Closing a socket that is not open yet would block k6's event loop.
      for (const number of ready) sockets[number].close();
    },
  };

  async function openInTurn() {
    while (begun < urls.length) {
      const number = begun++;
      while (!over && !(await attempt(number)));
    }
  }

  /**
   * @param {number} number
   * @returns {Promise<boolean>} false if it is open and stays silent
   */
  function attempt(number) {
    const socket = new WebSocket(urls[number], null, { tags: { name: 'hotel_socket' } });
    sockets[number] = socket;
    const current = () => sockets[number] === socket;
    return new Promise((resolve) => {
      /** @type {any} k6 ends an iteration only after its timers */
      let timer;
      const settle = (/** @type {boolean} */ done) => {
        clearTimeout(timer);
        resolve(done);
      };
      socket.onopen = () => {
        timer = setTimeout(() => settle(silent(number)), PATIENCE_MS);
        socket.send(READY_ASK);
      };
      socket.onmessage = (event) => {
        if (current() && event) hear(number, event);
        if (ready.has(number)) settle(true);
      };
      socket.onerror = (event) => {
        problem = problem || String(event && event.error);
      };
      socket.onclose = () => {
        if (current() && ready.delete(number)) connectionsRecord(ready.size);
        settle(true);
      };
    });
  }

  /**
   * @param {number} number of the socket to give up
   * @returns {false}
   */
  function silent(number) {
    const socket = sockets[number];
    delete sockets[number];
    socket.close();
    problem = problem || 'a socket opened and did not say "ready"';
    return false;
  }

  /**
   * @param {number} number
   * @param {import('k6/websockets').MessageEvent} event
   */
  function hear(number, event) {
    const message = JSON.parse(String(event.data));
    if (message.type === 'availability') return received(number, message, event.timestamp);
    if (message.type !== 'ready') return;
    ready.add(number);
    connectionsRecord(ready.size);
  }
}

/**
 * @param {string[]} hotels
 * @param {number} count
 */
export function hotelsInTurn(hotels, count) {
  return Array.from({ length: count }, (_, i) => hotels[i % hotels.length]);
}

/**
 * @param {string} baseUrl
 * @param {string} hotel
 */
export function socketUrl(baseUrl, hotel) {
  return `${baseUrl.replace(/^http/, 'ws')}/ws/hotel/${hotel}/`;
}
