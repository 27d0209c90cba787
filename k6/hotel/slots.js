// @ts-check
// The suite and night of each booking of the load. Booking n has a separate slot, so a 409 is never
// accidental. Nights are days since 1970-01-01.

/** @typedef {{ id: string, guests: number }} Suite */

/** @typedef {{ suite: string, check_in: string, check_out: string, customers: string[] }} Booking */

/**
 * Nights [firstDay, firstDay + nights) of these suites, which only this run may book.
 * @typedef {object} Lease
 * @property {Suite[]} suites
 * @property {string[]} customers
 * @property {Record<string, string>} hotels hotel of each suite, by suite id
 * @property {number} firstDay
 * @property {number} nights
 */

const DAY_MS = 86400000;

/** @param {string} date */
export function dayOf(date) {
  return Date.parse(date) / DAY_MS;
}

/** @param {number} day */
export function dateOf(day) {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/**
 * Return the nights for this many bookings, plus one: k6 may start one arrival more or less than
 * the plan's exact sum.
 * @param {number} bookings
 * @param {number} suites
 */
export function nightsFor(bookings, suites) {
  return Math.ceil(bookings / suites) + 1;
}

/**
 * All suites in turn, then the next night: consecutive bookings never compete for a suite's lock.
 * @param {Lease} lease
 * @param {number} n
 * @returns {Booking | null} null after the end of the lease
 */
export function slotBooking(lease, n) {
  const { suites, customers, firstDay, nights } = lease;
  const night = Math.floor(n / suites.length);
  if (night >= nights) return null;
  const suite = suites[n % suites.length];
  return {
    suite: suite.id,
    check_in: dateOf(firstDay + night),
    check_out: dateOf(firstDay + night + 1),
    customers: pickGuests(customers, n, suite.guests),
  };
}

/**
 * @param {string[]} customers
 * @param {number} n
 * @param {number} guests at most the number of customers
 */
function pickGuests(customers, n, guests) {
  const ids = [];
  for (let i = 0; i < guests; i++) ids.push(customers[(n + i) % customers.length]);
  return ids;
}

// A lease on a range of nights. Runs and generators do not know of each other, and pages may be
// stale; only Postgres knows which run owns which nights. So setup books the range [a, a + nights)
// in one agreed suite, the sentinel, which no load ever books: 201 means that this run owns these
// nights in all other suites, 409 that another run does. The exclusion constraint decides
// atomically, for all runs.

/**
 * @typedef {object} HotelDetail
 * @property {string} id
 * @property {SuiteDetail[]} suites
 */

/**
 * @typedef {object} SuiteDetail
 * @property {string} id
 * @property {number} capacity
 * @property {{ check_out: string, customers: string[] }[]} bookings
 */

/**
 * @typedef {object} Candidates
 * @property {string} sentinel
 * @property {Suite[]} suites one of each hotel in turn
 * @property {string[]} customers
 * @property {Record<string, string>} hotels hotel of each of these suites, by suite id
 * @property {number} freeFrom first day after every booking that the pages show
 */

// Far from the bookings in the data; on a fresh database every run books the same nights.
const FIRST_DAY = dayOf('2030-01-01');
const LAST_DAY = dayOf('9999-12-31');

const SUITES_PER_HOTEL = 10;
const MAX_CUSTOMERS = 100;
// Two guests if the suite has room, so that each booking costs the same.
const GUESTS = 2;

// Short runs also lease a year: on a stale page, strides of two nights would find no free range.
const MIN_NIGHTS = 365;
const MAX_ATTEMPTS = 40;
const MAX_STRIDE_DOUBLINGS = 6;

/**
 * @param {HotelDetail[]} hotels
 * @returns {Candidates}
 */
export function pickCandidates(hotels) {
  const ordered = [...hotels].sort(compareIds);
  const byHotel = ordered.map((hotel) => [...hotel.suites].sort(compareIds));
  const sentinel = byHotel[0].shift();
  const suites = roundRobin(byHotel.map((all) => all.slice(0, SUITES_PER_HOTEL)));
  const customers = pickCustomers(ordered);
  if (!sentinel || suites.length === 0 || customers.length === 0) {
    throw new Error(
      `${hotels.length} hotels have ${suites.length} suites in addition to the sentinel, and ` +
        `${customers.length} customers; bookings need one of each. Load the lab's data.`,
    );
  }
  const guestsMax = Math.min(GUESTS, customers.length);
  return {
    sentinel: sentinel.id,
    suites: suites.map(({ id, capacity }) => ({ id, guests: Math.min(guestsMax, capacity) })),
    customers,
    hotels: hotelsOf(suites, ordered),
    freeFrom: Math.max(FIRST_DAY, ...[sentinel, ...suites].map(lastCheckOut)),
  };
}

/**
 * Lease the first free range from `freeFrom` on. Strides grow and are random, so that generators
 * that start together separate quickly.
 * @param {number} nightsPlanned
 * @param {number} freeFrom
 * @param {(from: number, to: number) => boolean} book true: booked, false: booked by another run
 * @returns {{ firstDay: number, nights: number }}
 */
export function takeLease(nightsPlanned, freeFrom, book) {
  const nights = Math.max(nightsPlanned, MIN_NIGHTS);
  let day = freeFrom;
  for (let attempt = 0; attempt < MAX_ATTEMPTS && day + nights <= LAST_DAY; attempt++) {
    if (book(day, day + nights)) return { firstDay: day, nights };
    const stride = 2 ** Math.min(attempt, MAX_STRIDE_DOUBLINGS);
    day += nights * (1 + Math.floor(Math.random() * stride));
  }
  throw new Error(
    `No free range of ${nights} nights was found before 9999-12-31. ` +
      'Reset the database (bookings of earlier runs fill it), or lower RATE or DURATION.',
  );
}

/**
 * @param {SuiteDetail[]} suites
 * @param {HotelDetail[]} hotels
 */
function hotelsOf(suites, hotels) {
  const all = hotels.flatMap((hotel) => hotel.suites.map((suite) => [suite.id, hotel.id]));
  const hotelBySuite = Object.fromEntries(all);
  return Object.fromEntries(suites.map(({ id }) => [id, hotelBySuite[id]]));
}

/** @param {HotelDetail[]} hotels */
function pickCustomers(hotels) {
  /** @type {Set<string>} */
  const ids = new Set();
  for (const hotel of hotels) {
    for (const suite of hotel.suites) {
      for (const booking of suite.bookings) booking.customers.forEach((id) => ids.add(id));
      if (ids.size >= MAX_CUSTOMERS) return [...ids].slice(0, MAX_CUSTOMERS);
    }
  }
  return [...ids];
}

/** @param {SuiteDetail} suite */
function lastCheckOut(suite) {
  return suite.bookings.reduce((last, { check_out }) => Math.max(last, dayOf(check_out)), 0);
}

/** @param {SuiteDetail[][]} lists */
function roundRobin(lists) {
  const longest = Math.max(...lists.map((list) => list.length));
  const turns = Array.from({ length: longest }, (_, turn) => lists.map((list) => list[turn]));
  return turns.flat().filter((suite) => suite !== undefined);
}

/**
 * @param {{ id: string }} a
 * @param {{ id: string }} b
 */
function compareIds(a, b) {
  return a.id < b.id ? -1 : 1;
}
