// @ts-check
// How long a booking stays unseen: a page is read, so that whoever keeps pages has it; a night in it
// is booked; the page is read again and again until the booking is in it.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { pause } from '../lib/arrivals.js';
import { stalenessRecord } from '../lib/metrics.js';
import { bookingNth } from './booking.js';

/** @typedef {import('../lib/prepare.js').Prepared} Prepared */
/** @typedef {import('../lib/scenario.js').Tools} Tools */

const POLL_SECONDS = 0.1;

/**
 * @param {Tools} tools
 * @param {Prepared} data
 */
export function iteration({ api, env }, data) {
  const booking = bookingNth(data, exec.scenario.iterationInTest);
  const hotel = data.lease && booking && data.lease.hotels[booking.suite];
  if (!booking || !hotel) return;
  api.hotelText(hotel);
  const id = api.bookingCreate(booking);
  const bookedAt = Date.now();
  if (id)
    stalenessRecord(
      unseenMs(() => api.hotelText(hotel).includes(id), bookedAt, env.stalenessBoundMs),
    );
  pause();
}

/**
 * @param {() => boolean} seen asks once
 * @param {number} since
 * @param {number} boundMs
 * @returns {number | null} until the answer that shows it; null when none did within the bound
 */
export function unseenMs(seen, since, boundMs) {
  while (!seen()) {
    if (Date.now() - since >= boundMs) return null;
    sleep(POLL_SECONDS);
  }
  return Date.now() - since;
}
