// @ts-check
// Checks of responses: the status; in the smoke test also the body.
import { REQUESTS } from './metrics.js';

/** @typedef {import('k6/http').Response} Response */
/** @typedef {Record<string, (response: Response) => boolean>} Checks */

const HOTEL_FIELDS = ['id', 'name', 'address', 'city', 'stars', 'description'];

/** @type {Checks} */
const LIST_BODY = {
  'hotel_list: hotels have their fields': (response) =>
    bodyMatches(
      response,
      (hotels) =>
        Array.isArray(hotels) &&
        hotels.length > 0 &&
        hotels.every((hotel) => hasFields(hotel, [...HOTEL_FIELDS, 'suite_count'])),
    ),
};

/** @type {Checks} */
const DETAIL_BODY = {
  'hotel_detail: the requested hotel, with suites': (response) =>
    bodyMatches(
      response,
      (hotel) =>
        hasFields(hotel, HOTEL_FIELDS) &&
        response.url.includes(hotel.id) &&
        hotel.suites.length > 0 &&
        hotel.suites.every(isCompleteSuite),
    ),
};

/** @type {Checks} */
const BOOKING_BODY = {
  'booking_create: the requested booking': (response) =>
    bodyMatches(
      response,
      (booking) =>
        hasFields(booking, ['id', 'created_at']) &&
        matchesBooking(JSON.parse(response.request.body), booking),
    ),
};

/**
 * @param {boolean} bodies whether to check bodies as well
 * @returns {{ list: Checks, detail: Checks, booking: Checks }}
 */
export function buildChecks(bodies) {
  return {
    list: { ...statusCheck(REQUESTS.list, 200), ...(bodies ? LIST_BODY : {}) },
    detail: { ...statusCheck(REQUESTS.detail, 200), ...(bodies ? DETAIL_BODY : {}) },
    booking: { ...statusCheck(REQUESTS.booking, 201), ...(bodies ? BOOKING_BODY : {}) },
  };
}

/**
 * @param {string} name
 * @param {number} status
 * @returns {Checks}
 */
function statusCheck(name, status) {
  return { [`${name}: status is ${status}`]: (response) => response.status === status };
}

/**
 * A body that is not JSON, or has another shape, fails the check and not the iteration.
 * @param {Response} response
 * @param {(body: any) => boolean} condition
 */
function bodyMatches(response, condition) {
  try {
    return condition(response.json());
  } catch (_) {
    return false;
  }
}

/**
 * @param {any} object
 * @param {string[]} fields
 */
function hasFields(object, fields) {
  return fields.every((field) => object[field] !== undefined);
}

/** @param {any} suite */
function isCompleteSuite(suite) {
  return hasFields(suite, ['id', 'number', 'capacity', 'price']) && Array.isArray(suite.bookings);
}

/**
 * @param {any} sent
 * @param {any} received
 */
function matchesBooking(sent, received) {
  return (
    sent.suite === received.suite &&
    sent.check_in === received.check_in &&
    sent.check_out === received.check_out &&
    sent.customers.length === received.customers.length
  );
}
