// @ts-check
// Books free nights.
import exec from 'k6/execution';
import { buildApi } from '../api.js';
import { REQUESTS } from '../metrics.js';
import { slotBooking } from '../slots.js';

/** @typedef {import('../setup.js').HotelData} HotelData */

export const loadSetup = () => require('../setup.js').buildSetup({ books: 'some hotels' });

/** @type {import('../../lib/scenario').Build<HotelData>} */
export function build(env, profile) {
  const api = buildApi(env, profile);
  return {
    names: [REQUESTS.booking],
    request: (data) => makeBooking(api, data, exec.scenario.iterationInTest),
  };
}

/**
 * @param {import('../api.js').Api} api
 * @param {HotelData} data
 * @param {number} n number of the booking in the whole test, across VUs and instances
 */
export function makeBooking(api, data, n) {
  const booking = nthBooking(data, n);
  if (booking) api.createBooking(booking);
}

/**
 * @param {HotelData} data
 * @param {number} n
 */
export function nthBooking(data, n) {
  const booking = data.lease && slotBooking(data.lease, n);
  if (booking) return booking;
  exec.test.abort(`Booking ${n} is outside the leased nights: the lease is shorter than the plan.`);
  return null;
}
