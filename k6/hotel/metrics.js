// @ts-check
// Names of the requests, and metrics of bookings; names in Prometheus as in lib/metrics.js:
//   k6_lab_staleness_seconds       from a booking's 201 to a page that shows it
//   k6_lab_staleness_unseen_total  bookings that no page showed in time
//   k6_lab_bookings_created_total, k6_lab_bookings_conflicted_total
// WebSocket metrics: sockets.js.
import { Counter, Trend } from 'k6/metrics';

export const REQUESTS = {
  list: 'hotel_list',
  detail: 'hotel_detail',
  booking: 'booking_create',
};

const staleness = new Trend('lab_staleness', true);
const stalenessUnseen = new Counter('lab_staleness_unseen');
const bookingsCreated = new Counter('lab_bookings_created');
const bookingsConflicted = new Counter('lab_bookings_conflicted');

/** @param {number} status of the response to a booking */
export function recordBooking(status) {
  if (status === 201) bookingsCreated.add(1);
  if (status === 409) bookingsConflicted.add(1);
}

/** @param {number | null} ms until the booking was seen; null if it was not */
export function recordStaleness(ms) {
  // Adding 0 starts the series before the first unseen booking.
  stalenessUnseen.add(ms === null ? 1 : 0);
  if (ms !== null) staleness.add(ms);
}
