// @ts-check
// The API as the load uses it: one function per request, each recorded and checked.
import { check } from 'k6';
import http from 'k6/http';
import { checksBuild } from './checks.js';
import { REQUESTS, answerRecord, bookingRecord } from './metrics.js';

/** @typedef {ReturnType<typeof apiBuild>} Api */
/** @typedef {import('k6/http').RefinedResponse<'text'>} Text */

const TEXT = /** @type {const} */ ('text');

/**
 * Everything that does not change between requests is made once here.
 * @param {import('./env.js').Env} env
 * @param {import('./profiles.js').Profile} profile
 */
export function apiBuild(env, profile) {
  const hotelsUrl = `${env.baseUrl}/api/hotel/`;
  const bookingsUrl = `${env.baseUrl}/api/booking/`;
  const checks = checksBuild(profile.checkBodies);
  const statuses = checksBuild(false);
  const list = params(REQUESTS.list, env, profile);
  const detail = params(REQUESTS.detail, env, profile);
  const booking = {
    ...params(REQUESTS.booking, env, profile),
    headers: { 'Content-Type': 'application/json' },
  };

  return {
    hotelList() {
      const response = http.get(hotelsUrl, list);
      answerRecord(response, REQUESTS.list, env.boundMs);
      check(response, checks.list);
    },

    /** @param {string} id */
    hotelDetail(id) {
      const response = http.get(`${hotelsUrl}${id}/`, detail);
      answerRecord(response, REQUESTS.detail, env.boundMs);
      check(response, checks.detail);
    },

    /**
     * The page as it is: to parse some 900 KB again and again would fill the generator's CPU.
     * @param {string} id
     * @returns {string} empty when there was no answer
     */
    hotelText(id) {
      const response = http.get(`${hotelsUrl}${id}/`, { ...detail, responseType: 'text' });
      answerRecord(response, REQUESTS.detail, env.boundMs);
      check(response, statuses.detail);
      return String(response.body || '');
    },

    /**
     * @param {import('./slots.js').Booking} body
     * @returns {string | null} its id, where bodies are read
     */
    bookingCreate(body) {
      const response = http.post(bookingsUrl, JSON.stringify(body), booking);
      bookingAnswered(response);
      return profile.checkBodies ? bookingId(response) : null;
    },

    /**
     * Waits for no answer, so that its VU can do other things meanwhile.
     * @param {import('./slots.js').Booking} body
     * @returns {Promise<string | null>} its id; null if it was not made
     */
    async bookingSend(body) {
      const answered = { ...booking, responseType: TEXT };
      const text = JSON.stringify(body);
      const response = await http.asyncRequest('POST', bookingsUrl, text, answered);
      bookingAnswered(response);
      return bookingId(response);
    },

    /**
     * One try of a booking, for a client that tries again.
     * @param {import('./slots.js').Booking} body
     * @param {string} key the same for each try of one booking
     * @param {number} timeoutMs
     * @returns {Promise<Text>}
     */
    bookingTry(body, key, timeoutMs) {
      const headers = { ...booking.headers, 'Idempotency-Key': key };
      const tried = { ...booking, responseType: TEXT, headers, timeout: timeoutMs };
      return http.asyncRequest('POST', bookingsUrl, JSON.stringify(body), tried).then((answer) => {
        bookingAnswered(answer);
        return answer;
      });
    },

    /**
     * The page as it is, without waiting for it.
     * @param {string} id
     * @returns {Promise<Text>}
     */
    hotelAsk(id) {
      const asked = { ...detail, responseType: TEXT };
      return http.asyncRequest('GET', `${hotelsUrl}${id}/`, null, asked).then((answer) => {
        answerRecord(answer, REQUESTS.detail, env.boundMs);
        check(answer, statuses.detail);
        return answer;
      });
    },
  };

  /** @param {import('k6/http').Response} response */
  function bookingAnswered(response) {
    answerRecord(response, REQUESTS.booking, env.boundMs);
    bookingRecord(response.status);
    check(response, checks.booking);
  }
}

/** @param {import('k6/http').Response} response with its body */
function bookingId(response) {
  return response.status === 201 ? String(response.json('id')) : null;
}

/**
 * @param {string} name keeps a hotel's id out of the series
 * @param {import('./env.js').Env} env
 * @param {import('./profiles.js').Profile} profile
 */
function params(name, env, profile) {
  return {
    tags: { name },
    timeout: env.clientTimeoutMs,
    responseType: /** @type {'text' | 'none'} */ (profile.checkBodies ? 'text' : 'none'),
  };
}
