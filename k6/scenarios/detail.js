// @ts-check
// Requests the details of all hotels in turn.
import exec from 'k6/execution';
import { pause } from '../lib/arrivals.js';

/** @typedef {import('../lib/prepare.js').Prepared} Prepared */
/** @typedef {import('../lib/scenario.js').Tools} Tools */

/**
 * @param {Tools} tools
 * @param {Prepared} data
 */
export function request({ api }, data) {
  api.readHotel(data.hotels[exec.scenario.iterationInTest % data.hotels.length]);
}

/**
 * @param {Tools} tools
 * @param {Prepared} data
 */
export function iteration(tools, data) {
  request(tools, data);
  pause();
}
