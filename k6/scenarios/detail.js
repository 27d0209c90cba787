// @ts-check
// One hotel's detail, the hotels in turn.
import exec from 'k6/execution';
import { pause } from '../lib/pause.js';

/** @typedef {import('../lib/api.js').Api} Api */
/** @typedef {import('../lib/prepare.js').Prepared} Prepared */

/**
 * @param {Api} api
 * @param {Prepared} data
 */
export function request(api, data) {
  api.hotelDetail(data.hotels[exec.scenario.iterationInTest % data.hotels.length]);
}

/**
 * @param {Api} api
 * @param {Prepared} data
 */
export function iteration(api, data) {
  request(api, data);
  pause();
}
