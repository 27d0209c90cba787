// @ts-check
// Metrics of our own about WebSockets; names in Prometheus as in metrics.js:
//   k6_lab_ws_connections          sockets that are open and have said that they are ready
//   k6_lab_ws_messages_total       messages about bookings that they received
//   k6_lab_ws_delay_seconds        from a booking's commit to its message
//   k6_lab_ws_expected_total       messages that bookings owed to sockets; this and the following
//                                  are known, and sent, when the run ends
//   k6_lab_ws_lost_total, k6_lab_ws_doubled_total   of those never received; received once more
//   k6_lab_ws_other_total          received, but of no booking of this run or of another hotel
//   k6_lab_ws_closed_total         sockets that were not open to the end
import { Counter, Gauge, Trend } from 'k6/metrics';

const connections = new Gauge('lab_ws_connections');
const messages = new Counter('lab_ws_messages');
const delay = new Trend('lab_ws_delay', true);
const expected = new Counter('lab_ws_expected');
const lost = new Counter('lab_ws_lost');
const doubled = new Counter('lab_ws_doubled');
const other = new Counter('lab_ws_other');
const closed = new Counter('lab_ws_closed');
const loadSeconds = new Gauge('lab_load_seconds');

/** @param {number} open */
export function connectionsRecord(open) {
  connections.add(open);
}

/** @param {number} delayMs between two clocks: the backend's at the commit, ours at the receipt */
export function messageRecord(delayMs) {
  messages.add(1);
  delay.add(delayMs);
}

/**
 * @param {import('./tally.js').Counts} counts
 * @param {number} socketsClosed
 * @param {number} seconds from the first booking to the last one's answer
 */
export function totalsRecord(counts, socketsClosed, seconds) {
  // Each of them, a nought as well: "none was lost" is a measurement.
  messages.add(0);
  expected.add(counts.expected);
  lost.add(counts.lost);
  doubled.add(counts.doubled);
  other.add(counts.other);
  closed.add(socketsClosed);
  loadSeconds.add(seconds);
}
