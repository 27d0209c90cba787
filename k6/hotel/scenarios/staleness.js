// @ts-check
// How long a booking stays invisible: read a page, so that the caches store it; book a night in the
// hotel; read the page until it shows the booking.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { pause } from '../../lib/arrivals.js';
import { readInteger } from '../../lib/env.js';
import { buildApi } from '../api.js';
import { REQUESTS, recordStaleness } from '../metrics.js';
import { nthBooking } from './booking.js';

/** @typedef {import('../setup.js').HotelData} HotelData */

export const variables = ['STALENESS_BOUND'];

/** @param {import('../../lib/env.js').Variables} values */
export function readOptions(values) {
  // After this time a booking counts as unseen. At most 100 s: the smoke profile's gracefulStop is
  // 2 min.
  return { stalenessBoundMs: readInteger(values, 'STALENESS_BOUND', 10, 1, 100) * 1000 };
}

export const requiredProfile = {
  name: 'smoke',
  because:
    'it polls until the page shows the booking, so it has no planned rate. Run the load in a second k6',
};

export const loadSetup = () => require('../setup.js').buildSetup({ books: 'some hotels' });

/** @type {import('../../lib/scenario').Build<HotelData>} */
export function build(env, profile) {
  const api = buildApi(env, profile);
  return {
    names: [REQUESTS.detail, REQUESTS.booking],
    iteration: (data) => watchBooking(api, data, env.options.stalenessBoundMs),
  };
}

const POLL_SECONDS = 0.1;

/**
 * @param {import('../api.js').Api} api
 * @param {HotelData} data
 * @param {number} boundMs
 */
function watchBooking(api, data, boundMs) {
  const booking = nthBooking(data, exec.scenario.iterationInTest);
  const hotel = data.lease && booking && data.lease.hotels[booking.suite];
  if (!booking || !hotel) return;
  api.readHotelText(hotel);
  const id = api.createBooking(booking);
  const bookedAt = Date.now();
  if (id) {
    const isVisible = () => api.readHotelText(hotel).includes(id);
    recordStaleness(timeUntilVisible(isVisible, bookedAt, boundMs));
  }
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
