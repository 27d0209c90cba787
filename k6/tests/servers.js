// @ts-check
// Server experiments: the workbench, the closed ramp, and the message count of the sockets.
import { optionsBuild } from '../lib/options.js';
import { profileBuild, profileFor } from '../lib/profiles.js';
import { hotelsInTurn, socketUrl, tallyBuild } from '../lib/sockets.js';
import { summaryBuild } from '../lib/summary.js';
import { ROUTES, workbenchUrl } from '../lib/workbench.js';
import { env } from './env.js';
import { equals, throwsWith } from './expect.js';

export const cases = [workbenchAsked, rampOfUsers, availabilityAsked, tallyExact, tallyOfStrangers];

function workbenchAsked() {
  const asked = { SCENARIO: 'workbench', ROUTE: 'io_read', RETRIES: '3' };
  equals('workbench: asked', [env(asked).route, env(asked).retries], ['io_read', 3]);
  const routes = Object.keys(ROUTES);
  throwsWith('route: unknown', () => env({ ...asked, ROUTE: 'io-read' }), ['=io-read', ...routes]);
  throwsWith('route: needed', () => env({ SCENARIO: 'workbench' }), ['ROUTE= is', ...routes]);
  throwsWith('route: alone', () => env({ ROUTE: 'cpu' }), ['ROUTE', 'SCENARIO=workbench']);
  throwsWith('retries: alone', () => env({ RETRIES: '1' }), ['RETRIES', 'SCENARIO=workbench']);
  throwsWith('retries: range', () => env({ ...asked, RETRIES: '11' }), ['RETRIES=11', '0..10']);
  const url = 'http://a:1/workbench/random-row-lock/';
  equals('workbench: address', workbenchUrl('http://a:1', 'random_row_lock'), url);
  const built = optionsBuild(env(asked), profileBuild('closed', {}));
  const named = 'http_reqs{name:workbench_io_read}' in (built.thresholds || {});
  equals('workbench: figures by its name', named, true);
}

function rampOfUsers() {
  const published = profileBuild('closed-ramp', {});
  equals('ramp: published', [published.maxVUs, published.durationSeconds], [500, 180]);
  const short = profileBuild('closed-ramp', { VUS: '20', DURATION: '9s' });
  const options = optionsBuild(env({ PROFILE: 'closed-ramp', SCENARIO: 'list' }), short);
  const scenario = /** @type {any} */ (options.scenarios).list;
  const stages = [
    { duration: '5000ms', target: 20 },
    { duration: '4000ms', target: 20 },
  ];
  equals('ramp: 100 of 180 parts', scenario.stages, stages);
  equals('ramp: ends in time', [scenario.gracefulStop, scenario.gracefulRampDown], ['0s', '0s']);
  equals('ramp: closed', [short.plan, short.unit], [null, 'requests']);
  equals('ramp: what is cut off', unfinishedText(100, 93, 2), true);
}

/**
 * @param {number} begun
 * @param {number} tries
 * @param {number} retries
 */
function unfinishedText(begun, tries, retries) {
  const setup_data = { testid: 't', setupSeconds: 0, hotels: [], settings: null };
  const count = (/** @type {number} */ of) => ({ values: { count: of } });
  const metrics = {
    lab_begun: count(begun),
    lab_retries: count(retries),
    'http_reqs{scenario:workbench}': count(tries),
  };
  const data = { metrics, setup_data, state: { testRunDurationMs: 9000 } };
  const asked = env({ SCENARIO: 'workbench', ROUTE: 'hello', SUMMARY_PATH: 'out' });
  const outputs = summaryBuild(asked, profileBuild('closed-ramp', {}), data);
  equals('summary: no hotels', JSON.parse(outputs.out).lab.hotels, null);
  return outputs.stdout.includes(`unfinished  ${begun - tries + retries} requests`);
}

function availabilityAsked() {
  const asked = { SCENARIO: 'availability', PROFILE: 'hold', CONNECTIONS: '7', RATE: '2' };
  equals('sockets: asked', env(asked).connections, 7);
  throwsWith('sockets: alone', () => env({ CONNECTIONS: '7' }), ['SCENARIO=availability']);
  throwsWith('sockets: hold', () => env({ ...asked, PROFILE: 'closed' }), ['PROFILE=hold']);
  const profile = profileFor(env(asked), { RATE: '2', DURATION: '30s' });
  const executor = /** @type {any} */ (profile.executor);
  const built = [executor.vus, executor.iterations, executor.maxDuration, profile.maxVUs];
  equals('sockets: one VU holds all', built, [1, 1, '210s', 1]);
  equals('sockets: the plan stays', profile.plan, [{ duration_seconds: 30, from: 2, to: 2 }]);
  throwsWith('sockets: no more VUs', () => profileFor(env(asked), { MAX_VUS: '9' }), ['MAX_VUS']);
  equals('sockets: in turn', hotelsInTurn(['a', 'b'], 5), ['a', 'b', 'a', 'b', 'a']);
  equals('sockets: address', socketUrl('https://h/x', 'i'), 'wss://h/x/ws/hotel/i/');
}

function tallyExact() {
  const tally = tallyBuild(['a', 'b', 'a']);
  tally.received(0, 'early');
  tally.booked('early', 'a');
  tally.booked('b1', 'b');
  tally.booked('nobody', 'c');
  equals('tally: due', tally.counts(), { expected: 3, lost: 2, doubled: 0, other: 0 });
  tally.received(2, 'early');
  tally.received(2, 'early');
  tally.received(1, 'b1');
  equals('tally: each once', tally.counts(), { expected: 3, lost: 0, doubled: 1, other: 0 });
}

function tallyOfStrangers() {
  const tally = tallyBuild(['a', 'b']);
  tally.booked('a1', 'a');
  tally.received(1, 'a1');
  tally.received(0, 'of another run');
  equals('tally: no stranger counts', tally.counts(), {
    expected: 1,
    lost: 1,
    doubled: 0,
    other: 2,
  });
}
