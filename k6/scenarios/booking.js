// @ts-check
import exec from 'k6/execution';
import { pause } from '../lib/arrivals.js';
import { slotBooking } from '../lib/slots.js';

/** @typedef {import('../lib/api.js').Api} Api */
/** @typedef {import('../lib/prepare.js').Prepared} Prepared */
/** @typedef {import('../lib/scenario.js').Tools} Tools */

/**
 * @param {Tools} tools
 * @param {Prepared} data
 */
export function request({ api }, data) {
  makeBooking(api, data, exec.scenario.iterationInTest);
}

/**
 * @param {Tools} tools
 * @param {Prepared} data
 */
export function iteration(tools, data) {
  request(tools, data);
  pause();
}

/**
 * @param {Api} api
 * @param {Prepared} data
 * @param {number} n number of the booking in the whole test, across VUs and instances
 */
export function makeBooking(api, data, n) {
  const booking = nthBooking(data, n);
  if (booking) api.createBooking(booking);
}

/**
 * @param {Prepared} data
 * @param {number} n
 */
export function nthBooking(data, n) {
  const booking = data.lease && slotBooking(data.lease, n);
  if (booking) return booking;
  exec.test.abort(`Booking ${n} is outside the leased nights: the lease is shorter than the plan.`);
  return null;
}
