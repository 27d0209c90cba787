// @ts-check
// Checks of responses: the status; in the smoke test also the body.
import { REQUESTS } from './metrics.js';

/** @typedef {import('k6/http').Response} Response */
/** @typedef {Record<string, (response: Response) => boolean>} Checks */

const HOTEL_FIELDS = ['id', 'name', 'address', 'city', 'stars', 'description'];

/** @type {Checks} */
const LIST_BODY = {
  'hotel_list: hotels have their fields': (response) =>
    bodyHolds(
      response,
      (hotels) =>
        Array.isArray(hotels) &&
        hotels.length > 0 &&
        hotels.every((hotel) => fieldsPresent(hotel, [...HOTEL_FIELDS, 'suite_count'])),
    ),
};

/** @type {Checks} */
const DETAIL_BODY = {
  'hotel_detail: the hotel asked for, with suites': (response) =>
    bodyHolds(
      response,
      (hotel) =>
        fieldsPresent(hotel, HOTEL_FIELDS) &&
        response.url.includes(hotel.id) &&
        hotel.suites.length > 0 &&
        hotel.suites.every(suiteComplete),
    ),
};

/** @type {Checks} */
const BOOKING_BODY = {
  'booking_create: the booking asked for': (response) =>
    bodyHolds(
      response,
      (booking) =>
        fieldsPresent(booking, ['id', 'created_at']) &&
        bookingMatches(JSON.parse(response.request.body), booking),
    ),
};

/**
 * @param {boolean} bodies whether to check bodies as well
 * @returns {{ list: Checks, detail: Checks, booking: Checks }}
 */
export function checksBuild(bodies) {
  return {
    list: { ...statusIs(REQUESTS.list, 200), ...(bodies ? LIST_BODY : {}) },
    detail: { ...statusIs(REQUESTS.detail, 200), ...(bodies ? DETAIL_BODY : {}) },
    booking: { ...statusIs(REQUESTS.booking, 201), ...(bodies ? BOOKING_BODY : {}) },
  };
}

/**
 * @param {string} name
 * @param {number} status
 * @returns {Checks}
 */
function statusIs(name, status) {
  return { [`${name}: status is ${status}`]: (response) => response.status === status };
}

/**
 * A body that is not JSON, or has another shape, fails the check and not the iteration.
 * @param {Response} response
 * @param {(body: any) => boolean} condition
 */
function bodyHolds(response, condition) {
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
function fieldsPresent(object, fields) {
  return fields.every((field) => object[field] !== undefined);
}

/** @param {any} suite */
function suiteComplete(suite) {
  return (
    fieldsPresent(suite, ['id', 'number', 'capacity', 'price']) && Array.isArray(suite.bookings)
  );
}

/**
 * @param {any} sent
 * @param {any} received
 */
function bookingMatches(sent, received) {
  return (
    sent.suite === received.suite &&
    sent.check_in === received.check_in &&
    sent.check_out === received.check_out &&
    sent.customers.length === received.customers.length
  );
}
