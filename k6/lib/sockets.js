// @ts-check
// Many WebSockets of one VU, opened a few at a time and held. One that closes is not opened again:
// it has lost what comes after.
import { clearTimeout, setTimeout } from 'k6/timers';
import { WebSocket } from 'k6/websockets';
import { connectionsRecord } from './socket-metrics.js';

/** @typedef {ReturnType<typeof socketsBuild>} Sockets */

// Servers queue few connections that they have not accepted yet.
const OPENING_AT_ONCE = 50;

// k6 drops a message that it reads before it has noted that its socket is open (readyState, in
// internal/js/modules/k6/websockets), and `ready` may come with the handshake's answer. So it is asked
// for once the socket is open; one that stays silent even then is tried again.
const READY_ASK = 'ready?';
const PATIENCE_MS = 5000;

/**
 * @param {string[]} urls
 * @param {(socket: number, message: any, at: number) => void} received a message about a booking, and
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
     * Until each has said that it is ready or has failed, and `timeoutMs` at most.
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
    /** How many are open and ready now. */
    held: () => ready.size,
    /** Why the first that failed did. */
    problem: () => problem,
    close() {
      // To close one that is not open yet would hold up k6's event loop.
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
   * @returns {Promise<boolean>} false when it is open and stays silent
   */
  function attempt(number) {
    const socket = new WebSocket(urls[number], null, { tags: { name: 'hotel_socket' } });
    sockets[number] = socket;
    const current = () => sockets[number] === socket;
    return new Promise((resolve) => {
      /** @type {any} k6 lets no iteration end before its timers */
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
   * @param {number} number of a socket that is given up
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
