// @ts-check
// The article's visitor: the list, every hotel's detail, one booking.
import exec from 'k6/execution';
import { pause } from '../../lib/arrivals.js';
import { readInteger } from '../../lib/env.js';
import { buildApi } from '../api.js';
import { REQUESTS } from '../metrics.js';
import { makeBooking } from './booking.js';

/** @typedef {import('../api.js').Api} Api */
/** @typedef {import('../setup.js').HotelData} HotelData */

export const variables = ['JOURNEY_DETAILS'];

/** @param {import('../../lib/env.js').Variables} values */
export function readOptions(values) {
  // Hotels that a visitor opens, at most; 0: all.
  return { journeyDetails: readInteger(values, 'JOURNEY_DETAILS', 0, 1, 100000) };
}

export const loadSetup = () =>
  require('../setup.js').buildSetup({ books: 'some hotels', requestsPerBooking });

/**
 * @param {import('../../lib/profiles.js').Profile} profile
 * @param {number} hotels
 */
function requestsPerBooking({ unit }, hotels) {
  return unit === 'requests' ? stepCount(hotels) : 1;
}

/** @type {import('../../lib/scenario').Build<HotelData>} */
export function build(env, profile) {
  const api = buildApi(env, profile);
  return {
    names: Object.values(REQUESTS),
    iteration: (data) => makeJourney(api, data),
    request: (data) => makeStep(api, data),
  };
}

/**
 * @param {Api} api
 * @param {HotelData} data
 */
function makeJourney(api, data) {
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
 * @param {Api} api
 * @param {HotelData} data
 */
function makeStep(api, data) {
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
  const steps = stepCount(hotels);
  return { journey: Math.floor(iterationInTest / steps), step: iterationInTest % steps };
}

/** @param {number} hotels */
function stepCount(hotels) {
  return hotels + 2;
}
