// @ts-check
// Profiles, their plans, and the k6 options built from them.
import { plannedIterations, targetRateAt } from '../lib/arrivals.js';
import { buildOptions } from '../lib/options.js';
import { buildProfile } from '../lib/profiles.js';
import { env } from './env.js';
import { expectEqual, expectError } from './expect.js';

export const cases = [
  profilesSmokeAndArrival,
  profileGeometric,
  profileTrial,
  spikeProfile,
  articleProfiles,
  profileErrors,
  planArithmetic,
  segmentOptions,
  k6Options,
];

function profilesSmokeAndArrival() {
  const smoke = buildProfile('smoke', {});
  expectEqual('smoke: closed', [smoke.plan, smoke.maxVUs, smoke.durationSeconds], [null, 5, 20]);
  const ramp = buildProfile('breakpoint', { RATE: '200', DURATION: '2m' });
  expectEqual('breakpoint: plan', ramp.plan, [{ duration_seconds: 120, from: 0, to: 200 }]);
  expectEqual('breakpoint: requests arrive', ramp.unit, 'requests');
  expectEqual('breakpoint: VUs follow the rate', vusOf(ramp), [1000, 1000]);
  const steep = buildProfile('breakpoint', { RATE: '2000' });
  expectEqual('breakpoint: 1000 pre-allocated VUs', vusOf(steep), [1000, 5000]);
  const hold = buildProfile('hold', { RATE: '30', DURATION: '10s', MAX_VUS: '7' });
  expectEqual('hold: plan', hold.plan, [{ duration_seconds: 10, from: 30, to: 30 }]);
  expectEqual('hold: VUs up to MAX_VUS', vusOf(hold), [7, 7]);
  expectEqual('hold: constant', hold.executor.executor, 'constant-arrival-rate');
}

function profileGeometric() {
  const ramp = buildProfile('breakpoint-geometric', { START_RATE: '0.5', RATE: '4' });
  const plan = ramp.plan || [];
  expectEqual('geometric: seconds', [plan.length, ramp.durationSeconds], [31, 31]);
  expectEqual('geometric: ends', [plan[0].from, plan[30].to], [0.5, 4]);
  expectEqual('geometric: 7 % a second', (plan[20].to / plan[20].from).toFixed(2), '1.07');
  const { startRate, timeUnit, stages } = /** @type {any} */ (ramp.executor);
  expectEqual('geometric: per minute', [startRate, timeUnit, stages[30].target], [30, '1m', 240]);
  expectEqual('geometric: may stop early', ramp.mayStopEarly, true);
  const backwards = { START_RATE: '5', RATE: '5' };
  const build = () => buildProfile('breakpoint-geometric', backwards);
  expectError('geometric: start above the top', build, ['START_RATE=5', 'RATE=5']);
}

function profileTrial() {
  const trial = buildProfile('trial', { RATE: '12.34', MAX_VUS: '80' });
  const { rate, timeUnit, duration } = /** @type {any} */ (trial.executor);
  expectEqual('trial: a rate per minute', [rate, timeUnit, duration], [740, '1m', '30s']);
  const planned = 740 / 60;
  const plan = [{ duration_seconds: 30, from: planned, to: planned }];
  expectEqual('trial: the plan has the rate that k6 gets', trial.plan, plan);
  expectEqual('trial: may stop early', trial.mayStopEarly, true);
  expectEqual('trial: VUs up to MAX_VUS', vusOf(trial), [65, 80]);
  const build = () => buildProfile('trial', { RATE: '0' });
  expectError('trial: no rate', build, ['RATE=0', '0.1']);
}

/** @param {import('../lib/profiles.js').Profile} profile */
function vusOf(profile) {
  const executor = /** @type {any} */ (profile.executor);
  return [executor.preAllocatedVUs, executor.maxVUs];
}

function spikeProfile() {
  const spike = buildProfile('spike', { RATE: '80', DURATION: '30s' });
  const plan = [
    { duration_seconds: 10, from: 20, to: 20 },
    { duration_seconds: 30, from: 80, to: 80 },
    { duration_seconds: 20, from: 20, to: 20 },
  ];
  expectEqual('spike: plan', [spike.plan, spike.durationSeconds], [plan, 60]);
  const { startRate, stages } = /** @type {any} */ (spike.executor);
  const jumps = [
    { duration: '10s', target: 20 },
    { duration: '0s', target: 80 },
    { duration: '30s', target: 80 },
    { duration: '0s', target: 20 },
    { duration: '20s', target: 20 },
  ];
  expectEqual('spike: jumps up and down', [startRate, stages], [20, jumps]);
  const longer = buildProfile('spike', { RATE: '80', DURATION: '30s', CALM: '90s' });
  expectEqual('spike: calm as long as named', longer.durationSeconds, 130);
  const minimum = buildProfile('spike', { RATE: '1' }).plan || [];
  expectEqual('spike: minimum calm rate', minimum[0].from, 1);
}

function articleProfiles() {
  const cold = buildProfile('article-breakpoint', {});
  expectEqual('article: plan', cold.plan, [{ duration_seconds: 300, from: 0, to: 1000 }]);
  expectEqual('article: VUs', vusOf(cold), [100, 1000]);
  expectEqual('article: whole journeys', cold.unit, 'iterations');
  const warm = buildProfile('article-breakpoint-warm', {});
  const plan = [
    { duration_seconds: 60, from: 0, to: 10 },
    { duration_seconds: 300, from: 10, to: 1000 },
  ];
  expectEqual('article warm: plan', warm.plan, plan);
  expectEqual('article warm: VUs', vusOf(warm), [100, 10000]);
}

function profileErrors() {
  const build = buildProfile;
  expectError('rate: fraction', () => build('hold', { RATE: '1.5' }), ['RATE=1.5', '1..100000']);
  expectError('rate: zero', () => build('hold', { RATE: '0' }), ['RATE=0', '1..100000']);
  expectError('duration', () => build('hold', { DURATION: '5' }), ['DURATION=5', '1s..24h', '5m']);
  expectError('VUs unused', () => build('hold', { VUS: '5' }), ['VUS', 'RATE', 'MAX_VUS']);
  expectError('rate unused', () => build('smoke', { RATE: '5' }), ['RATE', 'VUS, DURATION']);
  const crossed = { PRE_ALLOCATED_VUS: '9', MAX_VUS: '8' };
  expectError('VUs crossed', () => build('hold', crossed), ['PRE_ALLOCATED_VUS=9', 'MAX_VUS=8']);
}

function planArithmetic() {
  const plan = buildProfile('article-breakpoint-warm', {}).plan || [];
  const rates = [-1, 0, 30, 60, 210, 360, 361].map((second) => targetRateAt(plan, second));
  expectEqual('target rate: along the plan', rates, [0, 0, 5, 10, 505, 1000, 0]);
  const ramp = buildProfile('breakpoint', { RATE: '200', DURATION: '10s' });
  expectEqual('planned: half of a ramp', plannedIterations(ramp, 1), 1000);
  const closed = buildProfile('closed', { VUS: '3', DURATION: '10s' });
  expectEqual('closed: no plan', [closed.plan, closed.unit, closed.maxVUs], [null, 'requests', 3]);
  expectEqual('planned: closed without pauses', plannedIterations(closed, 1), 20000);
  expectEqual(
    'planned: closed, by its pause',
    plannedIterations(buildProfile('smoke', {}), 1),
    105,
  );
  const shared = { ...closed, generators: 4 };
  expectEqual('planned: closed, shared', plannedIterations(shared, 1), 80000);
}

function segmentOptions() {
  const profile = buildProfile('hold', {});
  const third = buildOptions(env({ SEGMENT: '3/4', TESTID: 't' }), profile, []);
  expectEqual(
    'segment: options',
    [third.executionSegment, third.executionSegmentSequence, third.tags],
    ['2/4:3/4', '0/4,1/4,2/4,3/4,4/4', { testid: 't', instance_id: '3' }],
  );
  const alone = buildOptions(env({ TESTID: 't' }), profile, []);
  expectEqual(
    'no segment: options',
    [alone.executionSegment, alone.tags],
    [undefined, { testid: 't' }],
  );
}

function k6Options() {
  const hold = { PROFILE: 'hold', SCENARIO: 'list', CLIENT_TIMEOUT: '7' };
  const built = buildOptions(env(hold), buildProfile('hold', {}), ['a']);
  const scenario = /** @type {any} */ (built.scenarios).list;
  expectEqual(
    'options: scenario',
    [scenario.executor, scenario.gracefulStop],
    ['constant-arrival-rate', '8000ms'],
  );
  expectEqual('options: no url tag', JSON.stringify(built.systemTags).includes('url'), false);
  expectEqual('options: metrics by name', 'http_reqs{name:a}' in (built.thresholds || {}), true);
  const thresholds = Object.values(built.thresholds || {});
  expectEqual('options: no thresholds in a measurement', thresholds.flat(), []);
  const smoke = buildOptions(env({}), buildProfile('smoke', {}), []);
  expectEqual('options: thresholds of the smoke test', (smoke.thresholds || {}).checks, [
    'rate==1',
  ]);
}
