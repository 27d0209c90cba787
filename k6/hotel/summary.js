// @ts-check
// What the summary of a run reports about bookings and sockets.

import { durationText, valueOf } from '../lib/summary.js';

/** @typedef {import('../lib/summary.js').Metrics} Metrics */

/** @param {Metrics} metrics */
export function summaryLines(metrics) {
  const bookings = `bookings    ${bookingsText(metrics)}`;
  return [bookings, ...stalenessLines(metrics), ...socketLines(metrics)];
}

/** @param {Metrics} metrics */
function bookingsText(metrics) {
  const created = valueOf(metrics.lab_bookings_created, 'count');
  return `${created} created, ${valueOf(metrics.lab_bookings_conflicted, 'count')} conflicted`;
}

/** @param {Metrics} metrics */
function stalenessLines({ lab_staleness, lab_staleness_unseen }) {
  if (!lab_staleness_unseen) return [];
  const unseen = `${valueOf(lab_staleness_unseen, 'count')} bookings not visible in time`;
  return [`staleness   ${lab_staleness ? `${durationText(lab_staleness)}; ` : ''}${unseen}`];
}

/** @param {Metrics} metrics */
function socketLines(metrics) {
  if (!metrics.lab_ws_lost) return [];
  const count = (/** @type {string} */ name) => valueOf(metrics[`lab_ws_${name}`], 'count');
  const connections = valueOf(metrics.lab_ws_connections, 'max');
  return [
    `WebSockets  ${connections} open at once, ${count('closed')} closed early`,
    `messages    ${count('expected')} due, ${count('lost')} lost, ${count('doubled')} duplicates`,
    `delay       ${durationText(metrics.lab_ws_delay)} from commit to message`,
  ];
}
