// @ts-check
// The article's visitor: the list, every hotel's detail, one booking.
import exec from 'k6/execution';
import { pause } from '../lib/arrivals.js';
import { makeBooking } from './booking.js';

/** @typedef {import('../lib/prepare.js').Prepared} Prepared */
/** @typedef {import('../lib/scenario.js').Tools} Tools */

/**
 * @param {Tools} tools
 * @param {Prepared} data
 */
export function iteration({ api }, data) {
  api.listHotels();
  pause();
  for (const id of data.hotels) {
    api.readHotel(id);
    pause();
  }
  makeBooking(api, data, exec.scenario.iterationInTest);
  pause();
}

/**
 * Send one step of the journey, so that the rate of arrivals is the rate of requests.
 * @param {Tools} tools
 * @param {Prepared} data
 */
export function request({ api }, data) {
  const { journey, step } = journeyStep(exec.scenario.iterationInTest, data.hotels.length);
  if (step === 0) api.listHotels();
  else if (step <= data.hotels.length) api.readHotel(data.hotels[step - 1]);
  else makeBooking(api, data, journey);
}

/**
 * Uses the test-wide number of the iteration, so the ratio 1 : hotels : 1 is exact.
 * @param {number} iterationInTest
 * @param {number} hotels
 * @returns {{ journey: number, step: number }} step 0 is the list, the last one the booking
 */
export function journeyStep(iterationInTest, hotels) {
  const steps = hotels + 2;
  return { journey: Math.floor(iterationInTest / steps), step: iterationInTest % steps };
}
