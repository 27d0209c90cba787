// @ts-check
// The work of setup(): stop unless the target has the expected settings, then collect the data that
// the scenario needs. Its requests are named setup_…, to separate them from the load's.

import exec from 'k6/execution';
import http from 'k6/http';
import { PAUSE_SECONDS, plannedIterations } from './arrivals.js';
import { dateOf, nightsFor, pickCandidates, takeLease } from './slots.js';
import { ROUTES, workbenchUrl } from './workbench.js';

/**
 * @param {Record<string, string>} expected
 * @param {Record<string, unknown>} active the backend may return numbers as numbers
 * @returns {string[]} one sentence per difference
 */
export function settingDifferences(expected, active) {
  return Object.keys(expected)
    .filter((name) => String(active[name]) !== expected[name])
    .map((name) =>
      name in active
        ? `${name} is ${active[name]}, expected ${expected[name]}`
        : `${name} is not among the target's settings`,
    );
}

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
 * @param {Pick<import('./env.js').Env, 'baseUrl' | 'settingsUrl' | 'labToken'>} env
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

/** @typedef {import('./env.js').Env} Env */
/** @typedef {import('./profiles.js').Profile} Profile */

/**
 * Data that setup() returns to every VU.
 * @typedef {object} Prepared
 * @property {string} testid
 * @property {number} setupSeconds
 * @property {Record<string, unknown> | null} settings null when SETTINGS_URL is not set
 * @property {string[]} hotels empty in the scenario `workbench`
 * @property {import('./slots.js').Lease | null} lease null if the scenario makes no bookings
 */

const BOOKING_SCENARIOS = ['journey', 'booking', 'staleness', 'availability', 'faults'];

// Each VU has a copy of the suites of these hotels, and a slow target takes half a second per
// hotel. So a run with few bookings reads few hotels; the sentinel's is always the first.
const MAX_HOTELS_READ = 50;
const MIN_HOTELS_READ = 2;
const BOOKINGS_PER_HOTEL_READ = 10;

/**
 * @param {Env} env
 * @param {Profile} profile
 * @returns {Prepared}
 */
export function prepareTarget(env, profile) {
  const startedAt = Date.now();
  const settings = verifySettings(env);
  const testid = activeTestid(env);
  const source = chooseSource(env, testid);
  if (env.scenario === 'workbench') requireRoute(env);
  const hotels = env.scenario === 'workbench' ? [] : readHotels(env, source);
  const lease = BOOKING_SCENARIOS.includes(env.scenario)
    ? bookLease(env, profile, hotels, source)
    : null;
  return { testid, setupSeconds: (Date.now() - startedAt) / 1000, settings, hotels, lease };
}

/**
 * Return the id in force: `--tag testid=…` replaces options.tags, but not our env.
 * @param {Env} env
 */
function activeTestid(env) {
  return exec.test.options.tags?.testid || env.testid;
}

/** @param {Env} env */
function verifySettings(env) {
  if (!env.settingsUrl) return null;
  const response = http.get(env.settingsUrl, {
    ...params('setup_settings', env),
    headers: { 'X-Lab-Token': env.labToken },
  });
  requireStatus(response, 200, 'Check SETTINGS_URL (the backend itself, not Nginx) and LAB_TOKEN.');
  const { settings } = readBody(response);
  const differences = settingDifferences(env.expectSettings, settings || {});
  if (differences.length > 0) {
    throw new Error(
      `The target's settings are not those of EXPECT_SETTINGS: ${differences.join('; ')}. ` +
        'Change them on the target (lab set), or correct EXPECT_SETTINGS.',
    );
  }
  return settings;
}

/**
 * Check that the route exists. A POST without its fields creates no post; the response is then 400.
 * @param {Env} env
 */
function requireRoute(env) {
  const { method, query } = ROUTES[env.route];
  const url = workbenchUrl(env.baseUrl, env.route) + (query || '');
  const expected = method === 'POST' ? 400 : 200;
  const response = http.request(method, url, null, {
    ...params('setup_route', env),
    responseCallback: http.expectedStatuses(expected),
  });
  requireStatus(response, expected, 'Start the target with LAB_WORKBENCH=on.');
}

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
  return env.journeyHotels ? ids.slice(0, env.journeyHotels) : ids;
}

/**
 * @param {Env} env
 * @param {Profile} profile
 * @param {string[]} hotels
 * @param {Source} source
 * @returns {import('./slots.js').Lease}
 */
function bookLease(env, profile, hotels, source) {
  const planned = plannedBookings(env, profile, hotels.length);
  const byBookings = Math.max(Math.ceil(planned / BOOKINGS_PER_HOTEL_READ), MIN_HOTELS_READ);
  // These scenarios watch or read every hotel, so every hotel needs bookings.
  const hotelCount = ['availability', 'faults'].includes(env.scenario) ? hotels.length : byBookings;
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
 * @param {Env} env
 * @param {Profile} profile
 * @param {number} hotels
 */
function plannedBookings(env, profile, hotels) {
  const iterations = plannedIterations(profile, PAUSE_SECONDS);
  const requestsPerBooking =
    profile.unit === 'requests' && env.scenario === 'journey' ? hotels + 2 : 1;
  return Math.ceil(iterations / requestsPerBooking);
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

/**
 * @param {string} name
 * @param {Env} env
 */
function params(name, env) {
  return {
    tags: { name },
    timeout: env.clientTimeoutMs,
    responseType: /** @type {const} */ ('text'),
  };
}

/**
 * @param {import('k6/http').Response} response
 * @param {number} expected
 * @param {string} advice
 */
function requireStatus(response, expected, advice) {
  if (response.status === expected) return;
  const detail = response.error || String(response.body || '').trim();
  throw new Error(
    `${response.request.method} ${response.request.url} returned ${response.status}, ` +
      `expected ${expected} (${detail.slice(0, 300)}). ${advice}`,
  );
}

/**
 * @param {import('k6/http').Response} response
 * @returns {any}
 */
function readBody(response) {
  try {
    return response.json();
  } catch (_) {
    throw new Error(
      `${response.request.url} did not return JSON. Is another program listening on this port?`,
    );
  }
}
