// @ts-check
// A mix: its file, its shares, and the selection of operations.
import {
  buildMix,
  cumulatedShares,
  operationAt,
  readDocument,
  requestAt,
  selectOperations,
} from '../lib/mix.js';
import { buildOperation } from '../lib/operation.js';
import { buildProfile } from '../lib/profiles.js';
import { readHeaders } from '../scenarios/replay.js';
import { failureMessage } from '../scenarios/setup/replay.js';
import { env } from './env.js';
import { expectEqual, expectError } from './expect.js';

export const cases = [
  mixShares,
  mixAddresses,
  mixFile,
  mixSelection,
  mixInMemory,
  replayVariables,
  replayOperation,
  recordedTimes,
  setupFailures,
];

// Few, many, equal, and very different weights.
const WEIGHTS = [
  [1],
  [1, 1],
  [70, 20, 9, 1],
  [1, 1000, 0.001, 30],
  Array.from({ length: 224 }, (_, i) => 1 + (i % 7)),
  Array.from({ length: 50 }, (_, i) => 1.3 ** -i),
];

/**
 * Return how far, at most, any operation was off its share after any of so many requests.
 * @param {number[]} weights
 * @param {number} requests
 */
function largestError(weights, requests) {
  const shares = cumulatedShares(weights);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const counts = weights.map(() => 0);
  let largest = 0;
  for (let i = 0; i < requests; i++) {
    const operation = operationAt(shares, i);
    const rate = weights[operation] / total;
    // The error is largest just before and just after a request of the operation.
    largest = Math.max(largest, Math.abs(counts[operation] - i * rate));
    counts[operation] += 1;
    largest = Math.max(largest, Math.abs(counts[operation] - (i + 1) * rate));
  }
  return largest;
}

function mixShares() {
  for (const weights of WEIGHTS) {
    const error = largestError(weights, 50000);
    expectEqual(`shares: ${weights.length} operations within 4.5 requests`, error <= 4.5, true);
  }
  const late = Array.from({ length: 1000 }, (_, i) => operationAt([0.25, 1], 1e9 + i));
  const first = late.filter((operation) => operation === 0).length;
  expectEqual('shares: also after 1e9 requests', Math.abs(first - 250) <= 4.5, true);
  expectEqual('shares: rounded sum', operationAt([0.3, 0.6, 0.7], 1), 2);
}

function mixAddresses() {
  const counts = Array.from({ length: 20 }, () => 0);
  const shares = cumulatedShares([3, 1]);
  for (let i = 0; i < 8000; i++) {
    if (operationAt(shares, i) === 1) counts[requestAt(20, i)] += 1;
  }
  const range = [Math.min(...counts), Math.max(...counts)];
  expectEqual('addresses: equally often', range[0] >= 90 && range[1] <= 110, true);
}

const REQUESTS = [{ path: '/a/1' }, { path: '/a/2' }];

/** @param {string[]} names */
function documentOf(...names) {
  const common = { method: 'GET', weight: 1, expect: 200, requests: REQUESTS };
  return { operations: names.map((name) => ({ name, ...common })) };
}

function mixFile() {
  const read = (/** @type {string} */ text) => () => readDocument('/mix.json', () => text);
  const whole = JSON.stringify({ mix_version: 1, ...documentOf('a') });
  expectEqual('mix: operations', read(whole)().operations[0].name, 'a');
  const again = 'Make it again: lab mix make';
  expectError('mix: not JSON', read('{"token": '), ['MIX=/mix.json is not JSON', again]);
  expectError('mix: version', read('{"mix_version": 2}'), ['mix version 2', 'read 1', again]);
  expectError('mix: none', read('null'), ['mix version undefined', again]);
  expectError('mix: empty', read('{"mix_version": 1, "operations": []}'), ['no operations', again]);
}

function mixSelection() {
  const document = {
    ...documentOf('GET /api/a/', 'POST /api/a/', 'GET /api/b+(c)/'),
    arrivals: [2, 0, 1].map((operation, at) => ({ at, operation, request: 0 })),
  };
  const names = (/** @type {string} */ only) =>
    selectOperations(document, only).operations.map(({ name }) => name);
  expectEqual('only: all', names('').length, 3);
  expectEqual('only: start', names('GET *'), ['GET /api/a/', 'GET /api/b+(c)/']);
  expectEqual('only: middle', names('*/a/'), ['GET /api/a/', 'POST /api/a/']);
  expectEqual('only: no pattern', names('GET /api/b+(c)/'), ['GET /api/b+(c)/']);
  expectEqual('only: arrivals', selectOperations(document, 'GET *').arrivals, [
    { at: 0, operation: 1, request: 0 },
    { at: 1, operation: 0, request: 0 },
  ]);
  expectError('only: none', () => names('GET'), [
    'ONLY=GET',
    '3 operations',
    'nearest: GET /api/a/',
  ]);
}

function mixInMemory() {
  const arrivals = [
    { at: 2.5, operation: 1, request: 1 },
    { at: 0, operation: 0, request: 0 },
    { at: 2.1, operation: 0, request: 1 },
  ];
  const mix = buildMix({ ...documentOf('a', 'b'), arrivals });
  expectEqual(
    'mix: ranges of requests',
    mix.operations.map(({ first, count }) => [first, count]),
    [
      [0, 2],
      [2, 2],
    ],
  );
  expectEqual(
    'mix: arrivals by time',
    mix.arrivals.map(({ at }) => at),
    [0, 2.1, 2.5],
  );
  expectEqual('mix: recording', mix.recording, { seconds: 2.5, peakRate: 2 });
  expectEqual('mix: no recording', buildMix(documentOf('a')).recording, null);
}

function replayVariables() {
  const replay = { SCENARIO: 'replay' };
  expectError('replay: requires a mix', () => env(replay), ['MIX is not set', 'lab mix make']);
  const relative = { ...replay, MIX: 'm.json' };
  expectError('replay: relative path', () => env(relative), ['MIX=m.json', '$PWD']);
  expectError('replay: other scenario', () => env({ MIX: '/m' }), ['SCENARIO=replay']);
  const headers = { Authorization: 'Token x' };
  expectEqual('headers: of the target', readHeaders(JSON.stringify(headers)), headers);
  expectEqual('headers: none', readHeaders(undefined), {});
  for (const text of ['{"A": hush', '["hush"]', '"hush"', '{"A": {"b": "hush"}}', 'null']) {
    expectError(`headers: ${text}`, () => readHeaders(text), ['TARGET_HEADERS is not', 'like']);
    let message = '';
    try {
      readHeaders(text);
    } catch (error) {
      message = String(error);
    }
    expectEqual(`headers: ${text} not in the message`, message.includes('hush'), false);
  }
}

function replayOperation() {
  const target = { ...env({}), options: { headers: { Authorization: 'Token x' } } };
  const headers = { accept: 'text/html' };
  const place = { createdBy: null, page: null, first: 0, count: 1 };
  const part = { name: 'n'.repeat(200), method: 'GET', expect: 302, headers, ...place };
  const { name, isExpected, params, checks } = buildOperation(target, part);
  expectEqual('operation: length of its name', name.length, 120);
  expectEqual('operation: status class', [302, 304, 200, 0].map(isExpected), [
    ...[true, true, false, false],
  ]);
  expectEqual('operation: headers', params.headers, { ...headers, Authorization: 'Token x' });
  expectEqual('operation: check', Object.keys(checks), [`${name}: status is 3xx`]);
}

function recordedTimes() {
  const recording = { seconds: 120, peakRate: 30 };
  const profile = buildProfile('times', { SPEED: '10' }, recording);
  const { executor, vus, iterations, maxDuration } = /** @type {any} */ (profile.executor);
  expectEqual('times: by the recording', [profile.durationSeconds, profile.speed], [12, 10]);
  expectEqual('times: no plan', [profile.plan, profile.mayStopEarly], [null, undefined]);
  expectEqual('times: VUs by the peak', [vus, profile.maxVUs], [1000, 1000]);
  expectEqual('times: one loop per VU', [executor, iterations], ['per-vu-iterations', 1]);
  expectEqual('times: time for the last responses', maxDuration, '72s');
  const few = buildProfile('times', { VUS: '3' }, recording);
  expectEqual('times: VUS', [few.maxVUs, few.speed, few.durationSeconds], [3, 1, 120]);
  expectError('times: without a recording', () => buildProfile('times', {}), ['SCENARIO=replay']);
  expectError('times: no rate', () => buildProfile('times', { RATE: '5' }), ['VUS, SPEED']);
  expectError('times: speed', () => buildProfile('times', { SPEED: '0' }, recording), ['SPEED=0']);
  expectError('times: other profile', () => buildProfile('hold', { SPEED: '2' }), ['SPEED']);
}

function setupFailures() {
  const failing = (/** @type {number} */ status, count = 1, login = false) =>
    Array.from({ length: count }, (_, i) => ({
      name: `op ${i}`,
      text: `op ${i}: ${status}`,
      status,
      login,
    }));
  const failures = failing(404, 7);
  const all = failureMessage(failures, 9);
  expectEqual(
    'setup: five are named',
    [all.includes('7 of 9'), all.includes('op 4'), all.includes('op 5'), all.includes('2 more')],
    [true, true, false, true],
  );
  const one = failureMessage(failures.slice(0, 1), 9);
  expectEqual('setup: one', [one.includes('more'), one.includes('lab mix make')], [false, true]);
  const few = "--leave-out 'op 0'";
  const leftOut = [9, 19, 20].map((count) => failureMessage(failing(302), count).includes(few));
  expectEqual('setup: few can be left out', leftOut, [false, false, true]);
  const advice = (/** @type {ReturnType<typeof failing>} */ each) =>
    failureMessage(each, 9).split('. ').slice(-2).join('. ');
  const kinds = { login: 'Log in again', log: "See the target's log", down: 'running' };
  expectEqual('setup: redirects', advice(failing(302, 3)).includes(kinds.login), true);
  expectEqual('setup: refused', advice(failing(401)).includes(kinds.login), true);
  expectEqual('setup: login page', advice(failing(200, 1, true)).includes(kinds.login), true);
  expectEqual('setup: errors', advice(failing(500)).includes(kinds.log), true);
  expectEqual('setup: no response', advice(failing(0, 2)).includes(kinds.down), true);
  const both = advice([...failing(500, 2), ...failing(404)]);
  expectEqual('setup: most', [both.includes(kinds.log), both.includes('mix make')], [true, false]);
}
