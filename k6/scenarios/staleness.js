// @ts-check
// How long a booking stays invisible: read a page, so that the caches store it; book a night in the
// hotel; read the page until it shows the booking.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { pause } from '../lib/arrivals.js';
import { recordStaleness } from '../lib/metrics.js';
import { nthBooking } from './booking.js';

/** @typedef {import('../lib/prepare.js').Prepared} Prepared */
/** @typedef {import('../lib/scenario.js').Tools} Tools */

const POLL_SECONDS = 0.1;

/**
 * @param {Tools} tools
 * @param {Prepared} data
 */
export function iteration({ api, env }, data) {
  const booking = nthBooking(data, exec.scenario.iterationInTest);
  const hotel = data.lease && booking && data.lease.hotels[booking.suite];
  if (!booking || !hotel) return;
  api.readHotelText(hotel);
  const id = api.createBooking(booking);
  const bookedAt = Date.now();
  if (id)
    recordStaleness(
      timeUntilVisible(() => api.readHotelText(hotel).includes(id), bookedAt, env.stalenessBoundMs),
    );
  pause();
}

/**
 * @param {() => boolean} isVisible sends one request
 * @param {number} since
 * @param {number} boundMs
 * @returns {number | null} ms until the response that shows it; null if none did within the limit
 */
export function timeUntilVisible(isVisible, since, boundMs) {
  while (!isVisible()) {
    if (Date.now() - since >= boundMs) return null;
    sleep(POLL_SECONDS);
  }
  return Date.now() - since;
}
