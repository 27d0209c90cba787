// @ts-check
// What setup() does: stop unless the target is the one that was asked for, then gather what the
// scenario needs. Its requests are named setup_…, apart from the load's.

import exec from 'k6/execution';
import http from 'k6/http';
import { PAUSE_SECONDS, iterationsPlanned } from './arrivals.js';
import { candidatesPick, dateOf, leaseTake, nightsNeeded } from './slots.js';
import { ROUTES, workbenchUrl } from './workbench.js';

/**
 * @param {Record<string, string>} expected
 * @param {Record<string, unknown>} active the backend may answer numbers as numbers
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

// Where setup() reads its pages, so that the load finds the caches as they were.

/**
 * @typedef {object} Source
 * @property {string} origin scheme, host and port
 * @property {string} query
 * @property {Record<string, string>} headers
 */

/**
 * The backend itself, whose caches let the lab's token pass; where it can't be reached, the target
 * with a query of its own. Caches that go by the whole address (basic, cache_page) then keep setup's
 * pages apart from the load's; protected, versioned and lru do not, and are warmed by setup.
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
 * What setup() hands to every VU.
 * @typedef {object} Prepared
 * @property {string} testid
 * @property {number} setupSeconds
 * @property {Record<string, unknown> | null} settings null when SETTINGS_URL is not set
 * @property {string[]} hotels none where the scenario asks for none
 * @property {import('./slots.js').Lease | null} lease null when the scenario books nothing
 */

const BOOKING_SCENARIOS = ['journey', 'booking', 'staleness', 'availability', 'faults'];

// Each VU holds a copy of the suites picked from these hotels, and a slow target takes half a second
// for each: a run that books little reads few, always the sentinel's first.
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
 * `--tag testid=…` replaces options.tags, so the options in force know the id, not our env.
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
 * A POST without its fields makes no post, and is answered 400 where the route is.
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
  // Those who watch or read a hotel wait for a booking there.
  const enough = ['availability', 'faults'].includes(env.scenario) ? hotels.length : byBookings;
  // Sorted, so that every generator agrees on the sentinel, whatever order the list has.
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
 * @returns {boolean} false when another run has taken these nights
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
