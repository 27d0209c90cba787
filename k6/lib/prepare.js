// @ts-check
// The work of setup(): stop unless the target has the expected settings, then collect the data that
// the scenario needs. Its requests are named setup_…, to separate them from the load's.

import exec from 'k6/execution';
import http from 'k6/http';
import { PAUSE_SECONDS, iterationsPlanned } from './arrivals.js';
import { candidatesPick, dateOf, leaseTake, nightsNeeded } from './slots.js';
import { ROUTES, workbenchUrl } from './workbench.js';

/**
 * @param {Record<string, string>} expected
 * @param {Record<string, unknown>} active the backend may return numbers as numbers
 * @returns {string[]} one sentence per difference
 */
export function settingsDiffer(expected, active) {
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
export function sourceChoose({ baseUrl, settingsUrl, labToken }, testid) {
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
const HOTELS_READ_MAX = 50;
const HOTELS_READ_MIN = 2;
const BOOKINGS_PER_HOTEL_READ = 10;

/**
 * @param {Env} env
 * @param {Profile} profile
 * @returns {Prepared}
 */
export function targetPrepare(env, profile) {
  const startedAt = Date.now();
  const settings = settingsVerify(env);
  const testid = testidActive(env);
  const source = sourceChoose(env, testid);
  if (env.scenario === 'workbench') routeRequire(env);
  const hotels = env.scenario === 'workbench' ? [] : hotelsRead(env, source);
  const lease = BOOKING_SCENARIOS.includes(env.scenario)
    ? leaseBook(env, profile, hotels, source)
    : null;
  return { testid, setupSeconds: (Date.now() - startedAt) / 1000, settings, hotels, lease };
}

/**
 * Return the id in force: `--tag testid=…` replaces options.tags, but not our env.
 * @param {Env} env
 */
function testidActive(env) {
  return exec.test.options.tags?.testid || env.testid;
}

/** @param {Env} env */
function settingsVerify(env) {
  if (!env.settingsUrl) return null;
  const response = http.get(env.settingsUrl, {
    ...params('setup_settings', env),
    headers: { 'X-Lab-Token': env.labToken },
  });
  statusRequire(response, 200, 'Check SETTINGS_URL (the backend itself, not Nginx) and LAB_TOKEN.');
  const { settings } = bodyRead(response);
  const differences = settingsDiffer(env.expectSettings, settings || {});
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
function routeRequire(env) {
  const { method, query } = ROUTES[env.route];
  const url = workbenchUrl(env.baseUrl, env.route) + (query || '');
  const expected = method === 'POST' ? 400 : 200;
  const response = http.request(method, url, null, {
    ...params('setup_route', env),
    responseCallback: http.expectedStatuses(expected),
  });
  statusRequire(response, expected, 'Start the target with LAB_WORKBENCH=on.');
}

/**
 * @param {Env} env
 * @param {Source} source
 * @returns {string[]}
 */
function hotelsRead(env, source) {
  const response = pageRead(env, source, '/api/hotel/', 'setup_list');
  const variable = env.settingsUrl ? 'SETTINGS_URL' : 'BASE_URL';
  statusRequire(response, 200, `Start the stack, or set ${variable} (now ${source.origin}).`);
  const hotels = bodyRead(response);
  if (!Array.isArray(hotels) || hotels.length === 0) {
    throw new Error(`${response.url} answered no hotel. Load the lab's data into the target.`);
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
function leaseBook(env, profile, hotels, source) {
  const planned = bookingsPlanned(env, profile, hotels.length);
  const byBookings = Math.max(Math.ceil(planned / BOOKINGS_PER_HOTEL_READ), HOTELS_READ_MIN);
  // These scenarios watch or read every hotel, so every hotel needs bookings.
  const enough = ['availability', 'faults'].includes(env.scenario) ? hotels.length : byBookings;
  // Sorted, so that every generator picks the same sentinel, whatever the list's order.
  const read = [...hotels].sort().slice(0, Math.min(enough, HOTELS_READ_MAX));
  const details = read.map((id) => detailRead(env, id, source));
  const { sentinel, suites, customers, hotels: hotelOf, freeFrom } = candidatesPick(details);
  const wanted = nightsNeeded(planned, suites.length);
  const guests = customers.slice(0, 1);
  const { firstDay, nights } = leaseTake(wanted, freeFrom, (from, to) =>
    sentinelBook(env, {
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
function bookingsPlanned(env, profile, hotels) {
  const iterations = iterationsPlanned(profile, PAUSE_SECONDS);
  const oneInSo = profile.unit === 'requests' && env.scenario === 'journey' ? hotels + 2 : 1;
  return Math.ceil(iterations / oneInSo);
}

/**
 * @param {Env} env
 * @param {string} id
 * @param {Source} source
 * @returns {import('./slots.js').HotelDetail}
 */
function detailRead(env, id, source) {
  const response = pageRead(env, source, `/api/hotel/${id}/`, 'setup_detail');
  statusRequire(response, 200, 'See the log of the backend.');
  return bodyRead(response);
}

/**
 * @param {Env} env
 * @param {Source} source
 * @param {string} path
 * @param {string} name
 */
function pageRead(env, source, path, name) {
  const { origin, query, headers } = source;
  return http.get(`${origin}${path}${query}`, { ...params(name, env), headers });
}

/**
 * @param {Env} env
 * @param {import('./slots.js').Booking} booking
 * @returns {boolean} false if another run has booked these nights
 */
function sentinelBook(env, booking) {
  const response = http.post(`${env.baseUrl}/api/booking/`, JSON.stringify(booking), {
    ...params('setup_lease', env),
    headers: { 'Content-Type': 'application/json' },
    responseCallback: http.expectedStatuses(201, 409),
  });
  if (response.status === 409) return false;
  statusRequire(response, 201, 'Without a lease on its nights this run could meet another one.');
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
function statusRequire(response, expected, advice) {
  if (response.status === expected) return;
  const answer = response.error || String(response.body || '').trim();
  throw new Error(
    `${response.request.method} ${response.request.url} answered ${response.status}, ` +
      `not ${expected} (${answer.slice(0, 300)}). ${advice}`,
  );
}

/**
 * @param {import('k6/http').Response} response
 * @returns {any}
 */
function bodyRead(response) {
  try {
    return response.json();
  } catch (_) {
    throw new Error(`${response.request.url} answered no JSON. Is another program on this port?`);
  }
}
