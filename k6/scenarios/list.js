// @ts-check
import { pause } from '../lib/pause.js';

/** @param {import('../lib/api.js').Api} api */
export function request(api) {
  api.hotelList();
}

/** @param {import('../lib/api.js').Api} api */
export function iteration(api) {
  request(api);
  pause();
}
