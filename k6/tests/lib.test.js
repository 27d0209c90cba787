// @ts-check
// Tests of lib/ and scenarios/, run inside k6: `k6 run tests/lib.test.js`. No target is needed.
import * as bookings from './bookings.js';
import * as env from './env.js';
import { runTest } from './expect.js';
import * as faults from './faults.js';
import * as mix from './mix.js';
import * as objects from './objects.js';
import * as pages from './pages.js';
import * as profiles from './profiles.js';
import * as servers from './servers.js';
import * as staleness from './staleness.js';

export const options = { thresholds: { checks: ['rate==1.00'] } };

export default function () {
  const all = [env, profiles, bookings, staleness, servers, faults, mix, objects, pages];
  all.flatMap(({ cases }) => cases).forEach(runTest);
}
