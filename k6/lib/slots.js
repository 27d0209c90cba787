// @ts-check
// Which suite and night each booking of the load takes: booking n has a slot of its own, so a 409
// is never an accident. Nights are counted in days since 1970.

/** @typedef {{ id: string, guests: number }} Suite */

/** @typedef {{ suite: string, check_in: string, check_out: string, customers: string[] }} Booking */

/**
 * Nights [firstDay, firstDay + nights) of these suites, which this run alone may book.
 * @typedef {object} Lease
 * @property {Suite[]} suites
 * @property {string[]} customers
 * @property {Record<string, string>} hotels of each suite, by its id
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
 * Nights that so many bookings need. One night more, since k6 may start an arrival more or less
 * than the plan's exact sum.
 * @param {number} bookings
 * @param {number} suites
 */
export function nightsNeeded(bookings, suites) {
  return Math.ceil(bookings / suites) + 1;
}

/**
 * Round all suites first, then to the next night: neighbours in time never share a suite's lock.
 * @param {Lease} lease
 * @param {number} n
 * @returns {Booking | null} null past the lease's end
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
    customers: guestsPick(customers, n, suite.guests),
  };
}

/**
 * @param {string[]} customers
 * @param {number} n
 * @param {number} guests at most as many as there are customers
 */
function guestsPick(customers, n, guests) {
  const picked = [];
  for (let i = 0; i < guests; i++) picked.push(customers[(n + i) % customers.length]);
  return picked;
}
