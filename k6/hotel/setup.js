// @ts-check
// The scenarios' setup: collect the hotels, and reserve nights for the bookings.

import http from 'k6/http';
import { PAUSE_SECONDS, plannedIterations } from '../lib/arrivals.js';
import { params, readBody, requireStatus } from '../lib/setup_requests.js';
import { dateOf, nightsFor, pickCandidates, takeLease } from './slots.js';
import { summaryLines } from './summary.js';

// The address from which setup() reads pages, so that the load finds the caches unchanged.

/**
 * @typedef {object} Source
 * @property {string} origin scheme, host and port
 * @property {string} query
 * @property {Record<string, string>} headers
 */

/**
 * Return the backend itself, where the lab's token bypasses the caches; without SETTINGS_URL, the
 * target with a separate query. Caches with the full URL as key (basic, cache_page) then store
 * setup's pages separately from the load's; protected, versioned and lru do not: setup warms them.
 * @param {Pick<import('../lib/env.js').Env, 'baseUrl' | 'settingsUrl' | 'labToken'>} env
 * @param {string} testid
 * @returns {Source}
 */
export function chooseSource({ baseUrl, settingsUrl, labToken }, testid) {
  if (!settingsUrl) {
    return { origin: baseUrl, query: `?setup=${encodeURIComponent(testid)}`, headers: {} };
  }
  const [origin] = settingsUrl.match(/^https?:\/\/[^/]+/) || [''];
  return { origin, query: '', headers: { 'X-Lab-Token': labToken } };
}

/** @typedef {import('../lib/env.js').Env} Env */
/** @typedef {import('../lib/profiles.js').Profile} Profile */

/**
 * What a scenario needs of the hotels.
 * @typedef {object} Needs
 * @property {'nothing' | 'some hotels' | 'every hotel'} books every hotel: if the load watches all
 * @property {(profile: Profile, hotels: number) => number} [requestsPerBooking] default: 1
 */

/** @typedef {{ hotels: string[], lease: import('./slots.js').Lease | null }} Hotels */

/** @typedef {import('../lib/prepare.js').Prepared & Hotels} HotelData */

/**
 * @param {Needs} needs
 * @returns {import('../lib/scenario').Setup}
 */
export function buildSetup(needs) {
  return {
    prepare: (env, profile, testid) => prepareHotels(env, profile, needs, testid),
    summaryLines,
  };
}

/**
 * @param {Env} env
 * @param {Profile} profile
 * @param {Needs} needs
 * @param {string} testid
 * @returns {Hotels} without a lease if the scenario makes no bookings
 */
function prepareHotels(env, profile, needs, testid) {
  const source = chooseSource(env, testid);
  const hotels = readHotels(env, source);
  const lease = needs.books === 'nothing' ? null : bookLease(env, profile, needs, hotels, source);
  return { hotels, lease };
}

// Each VU has a copy of the suites of these hotels, and a slow target takes half a second per
// hotel. So a run with few bookings reads few hotels; the sentinel's is always the first.
const MAX_HOTELS_READ = 50;
const MIN_HOTELS_READ = 2;
const BOOKINGS_PER_HOTEL_READ = 10;

/**
 * @param {Env} env
 * @param {Source} source
 * @returns {string[]}
 */
function readHotels(env, source) {
  const response = readPage(env, source, '/api/hotel/', 'setup_list');
  const variable = env.settingsUrl ? 'SETTINGS_URL' : 'BASE_URL';
  requireStatus(response, 200, `Start the stack, or set ${variable} (now ${source.origin}).`);
  const hotels = readBody(response);
  if (!Array.isArray(hotels) || hotels.length === 0) {
    throw new Error(`${response.url} returned no hotels. Load the lab's data into the target.`);
  }
  const ids = hotels.map((hotel) => hotel.id);
  return env.options.journeyHotels ? ids.slice(0, env.options.journeyHotels) : ids;
}

/**
 * @param {Env} env
 * @param {Profile} profile
 * @param {Needs} needs
 * @param {string[]} hotels
 * @param {Source} source
 * @returns {import('./slots.js').Lease}
 */
function bookLease(env, profile, needs, hotels, source) {
  const planned = plannedBookings(profile, needs, hotels.length);
  const byBookings = Math.max(Math.ceil(planned / BOOKINGS_PER_HOTEL_READ), MIN_HOTELS_READ);
  const hotelCount = needs.books === 'every hotel' ? hotels.length : byBookings;
  // Sorted, so that every generator picks the same sentinel, whatever the list's order.
  const selection = [...hotels].sort().slice(0, Math.min(hotelCount, MAX_HOTELS_READ));
  const details = selection.map((id) => readDetail(env, id, source));
  const { sentinel, suites, customers, hotels: hotelOf, freeFrom } = pickCandidates(details);
  const nightCount = nightsFor(planned, suites.length);
  const guests = customers.slice(0, 1);
  const { firstDay, nights } = takeLease(nightCount, freeFrom, (from, to) =>
    bookSentinel(env, {
      suite: sentinel,
      check_in: dateOf(from),
      check_out: dateOf(to),
      customers: guests,
    }),
  );
  return { suites, customers, hotels: hotelOf, firstDay, nights };
}

/**
 * @param {Profile} profile
 * @param {Needs} needs
 * @param {number} hotels
 */
function plannedBookings(profile, { requestsPerBooking }, hotels) {
  const iterations = plannedIterations(profile, PAUSE_SECONDS);
  return Math.ceil(iterations / (requestsPerBooking ? requestsPerBooking(profile, hotels) : 1));
}

/**
 * @param {Env} env
 * @param {string} id
 * @param {Source} source
 * @returns {import('./slots.js').HotelDetail}
 */
function readDetail(env, id, source) {
  const response = readPage(env, source, `/api/hotel/${id}/`, 'setup_detail');
  requireStatus(response, 200, 'See the log of the backend.');
  return readBody(response);
}

/**
 * @param {Env} env
 * @param {Source} source
 * @param {string} path
 * @param {string} name
 */
function readPage(env, source, path, name) {
  const { origin, query, headers } = source;
  return http.get(`${origin}${path}${query}`, { ...params(name, env), headers });
}

/**
 * @param {Env} env
 * @param {import('./slots.js').Booking} booking
 * @returns {boolean} false if another run has booked these nights
 */
function bookSentinel(env, booking) {
  const response = http.post(`${env.baseUrl}/api/booking/`, JSON.stringify(booking), {
    ...params('setup_lease', env),
    headers: { 'Content-Type': 'application/json' },
    responseCallback: http.expectedStatuses(201, 409),
  });
  if (response.status === 409) return false;
  requireStatus(response, 201, 'Without this lease, bookings of another run could conflict.');
  return true;
}
