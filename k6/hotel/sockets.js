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
export function recordConnections(open) {
  connections.add(open);
}

/** @param {number} delayMs between two clocks: the backend's at the commit, k6's at the receipt */
export function recordMessage(delayMs) {
  messages.add(1);
  delay.add(delayMs);
}

/**
 * @param {Counts} counts
 * @param {number} socketsClosed
 * @param {number} seconds from the first booking to the last response
 */
export function recordTotals(counts, socketsClosed, seconds) {
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
/** @typedef {ReturnType<typeof buildTally>} Tally */

/** @param {string[]} hotels hotel of each socket */
export function buildTally(hotels) {
  /** @type {Map<string, string>} hotel of each booking, by booking id */
  const bookings = new Map();
  /** @type {Set<string>[]} ids of the bookings that each socket received */
  const receivedIds = hotels.map(() => new Set());
  let doubled = 0;

  return {
    /**
     * @param {string} id
     * @param {string} hotel
     */
    addBooking(id, hotel) {
      bookings.set(id, hotel);
    },

    /**
     * @param {number} socket
     * @param {string} id
     */
    addMessage(socket, id) {
      if (receivedIds[socket].has(id)) doubled += 1;
      else receivedIds[socket].add(id);
    },

    /** @returns {Counts} */
    counts() {
      const expected = countDue(hotels, bookings);
      const all = receivedIds.reduce((sum, ids) => sum + ids.size, 0);
      const due = receivedIds.reduce(
        (sum, ids, socket) => sum + countDueTo(ids, hotels[socket]),
        0,
      );
      return { expected, lost: expected - due, doubled, other: all - due };
    },
  };

  /**
   * @param {Set<string>} ids
   * @param {string} hotel
   */
  function countDueTo(ids, hotel) {
    let due = 0;
    for (const id of ids) if (bookings.get(id) === hotel) due += 1;
    return due;
  }
}

/**
 * @param {string[]} hotels
 * @param {Map<string, string>} bookings
 */
function countDue(hotels, bookings) {
  /** @type {Map<string, number>} */
  const watchers = new Map();
  for (const hotel of hotels) watchers.set(hotel, (watchers.get(hotel) || 0) + 1);
  let messages = 0;
  for (const hotel of bookings.values()) messages += watchers.get(hotel) || 0;
  return messages;
}

/** @typedef {ReturnType<typeof buildSockets>} Sockets */

// Servers queue only a few connections that they have not accepted yet.
const PARALLEL_OPENINGS = 50;

// k6 drops a message that it reads before it sets its socket to open (readyState, in
// internal/js/modules/k6/websockets), and `ready` may arrive with the handshake's response. So the
// client requests it once the socket is open; a socket that stays silent is replaced.
const READY_REQUEST = 'ready?';
const READY_TIMEOUT_MS = 5000;

/**
 * @param {string[]} urls
 * @param {(socket: number, message: any, at: number) => void} onMessage a booking's message, and
 *   when it was read, Unix time in ms
 */
export function buildSockets(urls, onMessage) {
  /** @type {WebSocket[]} */
  const sockets = [];
  /** @type {Set<number>} */
  const ready = new Set();
  let nextIndex = 0;
  let timedOut = false;
  let firstError = '';

  return {
    /**
     * Resolves when each socket is ready or has failed, after at most `timeoutMs`.
     * @param {number} timeoutMs
     */
    async open(timeoutMs) {
      /** @type {any} */
      let timer;
      const timeout = new Promise((resolve) => (timer = setTimeout(resolve, timeoutMs)));
      const openers = Array.from({ length: PARALLEL_OPENINGS }, openNext);
      await Promise.race([timeout, Promise.all(openers)]);
      timedOut = true;
      clearTimeout(timer);
    },
    /** Return the number of sockets that are open and ready. */
    readyCount: () => ready.size,
    /** Return the reason of the first failure. */
    firstError: () => firstError,
    close() {
      // Closing a socket that is not open yet would block k6's event loop.
      for (const number of ready) sockets[number].close();
    },
  };

  async function openNext() {
    while (nextIndex < urls.length) {
      const number = nextIndex++;
      while (!timedOut && !(await openSocket(number)));
    }
  }

  /**
   * @param {number} number
   * @returns {Promise<boolean>} false if it is open and stays silent
   */
  function openSocket(number) {
    const socket = new WebSocket(urls[number], null, { tags: { name: 'hotel_socket' } });
    sockets[number] = socket;
    const current = () => sockets[number] === socket;
    return new Promise((resolve) => {
      /** @type {any} k6 ends an iteration only after its timers */
      let timer;
      const settle = (/** @type {boolean} */ success) => {
        clearTimeout(timer);
        resolve(success);
      };
      socket.onopen = () => {
        timer = setTimeout(() => settle(abandonSocket(number)), READY_TIMEOUT_MS);
        socket.send(READY_REQUEST);
      };
      socket.onmessage = (event) => {
        if (current() && event) handleMessage(number, event);
        if (ready.has(number)) settle(true);
      };
      socket.onerror = (event) => {
        firstError = firstError || String(event && event.error);
      };
      socket.onclose = () => {
        if (current() && ready.delete(number)) recordConnections(ready.size);
        settle(true);
      };
    });
  }

  /**
   * @param {number} number of the socket to give up
   * @returns {false}
   */
  function abandonSocket(number) {
    const socket = sockets[number];
    delete sockets[number];
    socket.close();
    firstError = firstError || 'a socket opened, but did not send "ready"';
    return false;
  }

  /**
   * @param {number} number
   * @param {import('k6/websockets').MessageEvent} event
   */
  function handleMessage(number, event) {
    const message = JSON.parse(String(event.data));
    if (message.type === 'availability') return onMessage(number, message, event.timestamp);
    if (message.type !== 'ready') return;
    ready.add(number);
    recordConnections(ready.size);
  }
}

/**
 * @param {string[]} hotels
 * @param {number} count
 */
export function rotateHotels(hotels, count) {
  return Array.from({ length: count }, (_, i) => hotels[i % hotels.length]);
}

/**
 * @param {string} baseUrl
 * @param {string} hotel
 */
export function socketUrl(baseUrl, hotel) {
  return `${baseUrl.replace(/^http/, 'ws')}/ws/hotel/${hotel}/`;
}
