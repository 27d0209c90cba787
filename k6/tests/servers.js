// @ts-check
// Server experiments: the workbench, the closed ramp, and the message count of the sockets.
import { buildTally, rotateHotels, socketUrl } from '../hotel/sockets.js';
import { buildOptions } from '../lib/options.js';
import { buildProfile } from '../lib/profiles.js';
import { buildSummary } from '../lib/summary.js';
import * as setup from '../scenarios/setup/workbench.js';
import { build } from '../scenarios/workbench.js';
import { ROUTES, workbenchUrl } from '../scenarios/workbench_routes.js';
import { env, profile } from './env.js';
import { expectEqual, expectError } from './expect.js';

export const cases = [
  workbenchVariables,
  closedRamp,
  availabilityVariables,
  tallyExact,
  tallyOfForeignMessages,
];

function workbenchVariables() {
  const variables = { SCENARIO: 'workbench', ROUTE: 'io_read', RETRIES: '3' };
  expectEqual('workbench: variables', env(variables).options, { route: 'io_read', retries: 3 });
  const routes = Object.keys(ROUTES);
  expectError('route: unknown', () => env({ ...variables, ROUTE: 'io-read' }), [
    '=io-read',
    ...routes,
  ]);
  expectError('route: required', () => env({ SCENARIO: 'workbench' }), ['ROUTE= is', ...routes]);
  expectError('route: other scenario', () => env({ ROUTE: 'cpu' }), [
    'ROUTE',
    'SCENARIO=workbench',
  ]);
  expectError('retries: other scenario', () => env({ RETRIES: '1' }), [
    'RETRIES',
    'SCENARIO=workbench',
  ]);
  expectError('retries: range', () => env({ ...variables, RETRIES: '11' }), [
    'RETRIES=11',
    '0..10',
  ]);
  const url = 'http://a:1/workbench/random-row-lock/';
  expectEqual('workbench: address', workbenchUrl('http://a:1', 'random_row_lock'), url);
  const { names } = build(env(variables), buildProfile('closed', {}));
  expectEqual('workbench: name', names, ['workbench_io_read']);
}

function closedRamp() {
  const published = buildProfile('closed-ramp', {});
  expectEqual('ramp: published', [published.maxVUs, published.durationSeconds], [500, 180]);
  const short = buildProfile('closed-ramp', { VUS: '20', DURATION: '9s' });
  const options = buildOptions(env({ PROFILE: 'closed-ramp', SCENARIO: 'list' }), short, []);
  const scenario = /** @type {any} */ (options.scenarios).list;
  const stages = [
    { duration: '5000ms', target: 20 },
    { duration: '4000ms', target: 20 },
  ];
  expectEqual('ramp: 100 of 180 parts', scenario.stages, stages);
  expectEqual(
    'ramp: ends in time',
    [scenario.gracefulStop, scenario.gracefulRampDown],
    ['0s', '0s'],
  );
  expectEqual('ramp: closed', [short.plan, short.unit], [null, 'requests']);
  expectEqual('ramp: unfinished requests', unfinishedText(100, 93, 2), true);
}

/**
 * @param {number} starts
 * @param {number} attempts
 * @param {number} retries
 */
function unfinishedText(starts, attempts, retries) {
  const setup_data = { testid: 't', setupSeconds: 0, settings: null };
  const count = (/** @type {number} */ value) => ({ values: { count: value } });
  const metrics = {
    lab_begun: count(starts),
    lab_retries: count(retries),
    'http_reqs{scenario:workbench}': count(attempts),
  };
  const data = { metrics, setup_data, state: { testRunDurationMs: 9000 } };
  const variables = env({ SCENARIO: 'workbench', ROUTE: 'hello', SUMMARY_PATH: 'out' });
  const outputs = buildSummary(variables, buildProfile('closed-ramp', {}), setup, data);
  expectEqual('summary: of the route', JSON.parse(outputs.out).lab.route, 'hello');
  return outputs.stdout.includes(`unfinished  ${starts - attempts + retries} requests`);
}

function availabilityVariables() {
  const variables = { SCENARIO: 'availability', PROFILE: 'hold', CONNECTIONS: '7', RATE: '2' };
  expectEqual('sockets: variables', env(variables).options.connections, 7);
  expectError('sockets: other scenario', () => env({ CONNECTIONS: '7' }), [
    'SCENARIO=availability',
  ]);
  expectError('sockets: hold', () => env({ ...variables, PROFILE: 'closed' }), ['PROFILE=hold']);
  const load = { SCENARIO: 'availability', PROFILE: 'hold', RATE: '2', DURATION: '30s' };
  const { executor, maxVUs, plan } = profile(load);
  const { vus, iterations, maxDuration } = /** @type {any} */ (executor);
  const built = [vus, iterations, maxDuration, maxVUs];
  expectEqual('sockets: one VU', built, [1, 1, '210s', 1]);
  expectEqual('sockets: plan', plan, [{ duration_seconds: 30, from: 2, to: 2 }]);
  expectError('sockets: no more VUs', () => profile({ ...load, MAX_VUS: '9' }), ['MAX_VUS']);
  expectEqual('sockets: in turn', rotateHotels(['a', 'b'], 5), ['a', 'b', 'a', 'b', 'a']);
  expectEqual('sockets: address', socketUrl('https://h/x', 'i'), 'wss://h/x/ws/hotel/i/');
}

function tallyExact() {
  const tally = buildTally(['a', 'b', 'a']);
  tally.addMessage(0, 'early');
  tally.addBooking('early', 'a');
  tally.addBooking('b1', 'b');
  tally.addBooking('unwatched', 'c');
  expectEqual('tally: due', tally.counts(), { expected: 3, lost: 2, doubled: 0, other: 0 });
  tally.addMessage(2, 'early');
  tally.addMessage(2, 'early');
  tally.addMessage(1, 'b1');
  expectEqual('tally: each once', tally.counts(), { expected: 3, lost: 0, doubled: 1, other: 0 });
}

function tallyOfForeignMessages() {
  const tally = buildTally(['a', 'b']);
  tally.addBooking('a1', 'a');
  tally.addMessage(1, 'a1');
  tally.addMessage(0, 'of another run');
  expectEqual('tally: foreign messages', tally.counts(), {
    expected: 1,
    lost: 1,
    doubled: 0,
    other: 2,
  });
}
