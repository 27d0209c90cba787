// @ts-check
// Profiles, their plans, and the k6 options built from them.
import { iterationsPlanned, targetRateAt } from '../lib/arrivals.js';
import { optionsBuild } from '../lib/options.js';
import { profileBuild } from '../lib/profiles.js';
import { env } from './env.js';
import { equals, throwsWith } from './expect.js';

export const cases = [
  profilesSmokeAndArrival,
  profileGeometric,
  profileOfASpike,
  profilesOfTheArticle,
  profileMistakes,
  planArithmetic,
  optionsOfK6,
];

function profilesSmokeAndArrival() {
  const smoke = profileBuild('smoke', {});
  equals('smoke: closed', [smoke.plan, smoke.maxVUs, smoke.durationSeconds], [null, 5, 20]);
  const ramp = profileBuild('breakpoint', { RATE: '200', DURATION: '2m' });
  equals('breakpoint: plan', ramp.plan, [{ duration_seconds: 120, from: 0, to: 200 }]);
  equals('breakpoint: requests arrive', ramp.unit, 'requests');
  equals('breakpoint: VUs follow the rate', vusOf(ramp), [1000, 1000]);
  const steep = profileBuild('breakpoint', { RATE: '2000' });
  equals('breakpoint: 1000 VUs are made before the start', vusOf(steep), [1000, 5000]);
  const hold = profileBuild('hold', { RATE: '30', DURATION: '10s', MAX_VUS: '7' });
  equals('hold: plan', hold.plan, [{ duration_seconds: 10, from: 30, to: 30 }]);
  equals('hold: never more VUs than allowed', vusOf(hold), [7, 7]);
  equals('hold: constant', hold.executor.executor, 'constant-arrival-rate');
}

function profileGeometric() {
  const ramp = profileBuild('breakpoint-geometric', { START_RATE: '0.5', RATE: '4' });
  const plan = ramp.plan || [];
  equals('geometric: seconds', [plan.length, ramp.durationSeconds], [31, 31]);
  equals('geometric: ends', [plan[0].from, plan[30].to], [0.5, 4]);
  equals('geometric: 7 % a second', (plan[20].to / plan[20].from).toFixed(2), '1.07');
  const { startRate, timeUnit, stages } = /** @type {any} */ (ramp.executor);
  equals('geometric: per minute', [startRate, timeUnit, stages[30].target], [30, '1m', 240]);
  equals('geometric: may stop early', ramp.mayStopEarly, true);
  const backwards = { START_RATE: '5', RATE: '5' };
  const build = () => profileBuild('breakpoint-geometric', backwards);
  throwsWith('geometric: start above the top', build, ['START_RATE=5', 'RATE=5']);
}

/** @param {import('../lib/profiles.js').Profile} profile */
function vusOf(profile) {
  const executor = /** @type {any} */ (profile.executor);
  return [executor.preAllocatedVUs, executor.maxVUs];
}

function profileOfASpike() {
  const spike = profileBuild('spike', { RATE: '80', DURATION: '30s' });
  const plan = [
    { duration_seconds: 10, from: 20, to: 20 },
    { duration_seconds: 30, from: 80, to: 80 },
    { duration_seconds: 20, from: 20, to: 20 },
  ];
  equals('spike: plan', [spike.plan, spike.durationSeconds], [plan, 60]);
  const { startRate, stages } = /** @type {any} */ (spike.executor);
  const asked = [
    { duration: '10s', target: 20 },
    { duration: '0s', target: 80 },
    { duration: '30s', target: 80 },
    { duration: '0s', target: 20 },
    { duration: '20s', target: 20 },
  ];
  equals('spike: jumps up and down', [startRate, stages], [20, asked]);
  const least = profileBuild('spike', { RATE: '1' }).plan || [];
  equals('spike: someone comes before it', least[0].from, 1);
}

function profilesOfTheArticle() {
  const cold = profileBuild('article-breakpoint', {});
  equals('article: plan', cold.plan, [{ duration_seconds: 300, from: 0, to: 1000 }]);
  equals('article: VUs', vusOf(cold), [100, 1000]);
  equals('article: whole journeys', cold.unit, 'iterations');
  const warm = profileBuild('article-breakpoint-warm', {});
  const plan = [
    { duration_seconds: 60, from: 0, to: 10 },
    { duration_seconds: 300, from: 10, to: 1000 },
  ];
  equals('article warm: plan', warm.plan, plan);
  equals('article warm: VUs', vusOf(warm), [100, 10000]);
}

function profileMistakes() {
  const build = profileBuild;
  throwsWith('rate: fraction', () => build('hold', { RATE: '1.5' }), ['RATE=1.5', '1..100000']);
  throwsWith('rate: zero', () => build('hold', { RATE: '0' }), ['RATE=0', '1..100000']);
  throwsWith('duration', () => build('hold', { DURATION: '5' }), ['DURATION=5', '1s..24h', '5m']);
  throwsWith('VUs unused', () => build('hold', { VUS: '5' }), ['VUS', 'RATE', 'MAX_VUS']);
  throwsWith('rate unused', () => build('smoke', { RATE: '5' }), ['RATE', 'VUS, DURATION']);
  const crossed = { PRE_ALLOCATED_VUS: '9', MAX_VUS: '8' };
  throwsWith('VUs crossed', () => build('hold', crossed), ['PRE_ALLOCATED_VUS=9', 'MAX_VUS=8']);
}

function planArithmetic() {
  const plan = profileBuild('article-breakpoint-warm', {}).plan || [];
  const rates = [-1, 0, 30, 60, 210, 360, 361].map((second) => targetRateAt(plan, second));
  equals('target rate: along the plan', rates, [0, 0, 5, 10, 505, 1000, 0]);
  const ramp = profileBuild('breakpoint', { RATE: '200', DURATION: '10s' });
  equals('planned: half of a ramp', iterationsPlanned(ramp, 1), 1000);
  const closed = profileBuild('closed', { VUS: '3', DURATION: '10s' });
  equals('closed: no plan', [closed.plan, closed.unit, closed.maxVUs], [null, 'requests', 3]);
  equals('planned: closed without pauses, generously', iterationsPlanned(closed, 1), 20000);
  equals('planned: closed, by its pause', iterationsPlanned(profileBuild('smoke', {}), 1), 105);
}

function optionsOfK6() {
  const hold = { PROFILE: 'hold', SCENARIO: 'list', CLIENT_TIMEOUT: '7' };
  const built = optionsBuild(env(hold), profileBuild('hold', {}));
  const scenario = /** @type {any} */ (built.scenarios).list;
  equals(
    'options: scenario',
    [scenario.executor, scenario.gracefulStop],
    ['constant-arrival-rate', '8000ms'],
  );
  equals('options: no url tag', JSON.stringify(built.systemTags).includes('url'), false);
  const thresholds = Object.values(built.thresholds || {});
  equals('options: a measurement judges nothing', thresholds.flat(), []);
  const smoke = optionsBuild(env({}), profileBuild('smoke', {}));
  equals('options: smoke judges', (smoke.thresholds || {}).checks, ['rate==1']);
}
