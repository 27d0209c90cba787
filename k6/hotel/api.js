// @ts-check
// Client of the hotel API: one function per request. Each response is recorded and checked.
import { check } from 'k6';
import http from 'k6/http';
import { recordResponse } from '../lib/metrics.js';
import { buildChecks } from './checks.js';
import { REQUESTS, recordBooking } from './metrics.js';

/** @typedef {ReturnType<typeof buildApi>} Api */
/** @typedef {import('k6/http').RefinedResponse<'text'>} Text */

const TEXT = /** @type {const} */ ('text');

/**
 * Build the client. Everything that is the same for all requests is built once here.
 * @param {import('../lib/env.js').Env} env
 * @param {import('../lib/profiles.js').Profile} profile
 */
export function buildApi(env, profile) {
  const hotelsUrl = `${env.baseUrl}/api/hotel/`;
  const bookingsUrl = `${env.baseUrl}/api/booking/`;
  const checks = buildChecks(profile.checkBodies);
  const statuses = buildChecks(false);
  const list = params(REQUESTS.list, env, profile);
  const detail = params(REQUESTS.detail, env, profile);
  const booking = {
    ...params(REQUESTS.booking, env, profile),
    headers: { 'Content-Type': 'application/json' },
  };

  return {
    listHotels() {
      const response = http.get(hotelsUrl, list);
      recordResponse(response, REQUESTS.list, env.boundMs);
      check(response, checks.list);
    },

    /** @param {string} id */
    readHotel(id) {
      const response = http.get(`${hotelsUrl}${id}/`, detail);
      recordResponse(response, REQUESTS.detail, env.boundMs);
      check(response, checks.detail);
    },

    /**
     * Return the page as unparsed text: parsing about 900 KB per request would use up k6's CPU.
     * @param {string} id
     * @returns {string} empty without a response
     */
    readHotelText(id) {
      const response = http.get(`${hotelsUrl}${id}/`, { ...detail, responseType: 'text' });
      recordResponse(response, REQUESTS.detail, env.boundMs);
      check(response, statuses.detail);
      return String(response.body || '');
    },

    /**
     * @param {import('./slots.js').Booking} body
     * @returns {string | null} the booking's id, if the profile reads bodies
     */
    createBooking(body) {
      const response = http.post(bookingsUrl, JSON.stringify(body), booking);
      recordBookingResponse(response);
      return profile.checkBodies ? bookingId(response) : null;
    },

    /**
     * Send a booking without blocking, so that the VU can do other work during the request.
     * @param {import('./slots.js').Booking} body
     * @returns {Promise<string | null>} the booking's id; null if none was created
     */
    async sendBooking(body) {
      const options = { ...booking, responseType: TEXT };
      const text = JSON.stringify(body);
      const response = await http.asyncRequest('POST', bookingsUrl, text, options);
      recordBookingResponse(response);
      return bookingId(response);
    },

    /**
     * Send one attempt of a booking, for a client that retries.
     * @param {import('./slots.js').Booking} body
     * @param {string} key idempotency key, the same for each attempt of one booking
     * @param {number} timeoutMs
     * @returns {Promise<Text>}
     */
    tryBooking(body, key, timeoutMs) {
      const headers = { ...booking.headers, 'Idempotency-Key': key };
      const options = { ...booking, responseType: TEXT, headers, timeout: timeoutMs };
      return http
        .asyncRequest('POST', bookingsUrl, JSON.stringify(body), options)
        .then((response) => {
          recordBookingResponse(response);
          return response;
        });
    },

    /**
     * Request the page as unparsed text, without blocking.
     * @param {string} id
     * @returns {Promise<Text>}
     */
    requestHotel(id) {
      const options = { ...detail, responseType: TEXT };
      return http.asyncRequest('GET', `${hotelsUrl}${id}/`, null, options).then((response) => {
        recordResponse(response, REQUESTS.detail, env.boundMs);
        check(response, statuses.detail);
        return response;
      });
    },
  };

  /** @param {import('k6/http').Response} response */
  function recordBookingResponse(response) {
    recordResponse(response, REQUESTS.booking, env.boundMs);
    recordBooking(response.status);
    check(response, checks.booking);
  }
}

/** @param {import('k6/http').Response} response with its body */
function bookingId(response) {
  return response.status === 201 ? String(response.json('id')) : null;
}

/**
 * @param {string} name the `name` tag, so that series do not contain the hotel's id
 * @param {import('../lib/env.js').Env} env
 * @param {import('../lib/profiles.js').Profile} profile
 */
function params(name, env, profile) {
  return {
    tags: { name },
    timeout: env.clientTimeoutMs,
    responseType: /** @type {'text' | 'none'} */ (profile.checkBodies ? 'text' : 'none'),
  };
}
