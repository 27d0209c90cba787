// @ts-check
// Tests of lib/ and scenarios/, run inside k6: `k6 run tests/lib.test.js`. No target is needed.
import { durationParse, envRead, settingsParse, testidDefault } from '../lib/env.js';
import { candidatesPick, leaseTake } from '../lib/lease.js';
import { optionsBuild } from '../lib/options.js';
import { iterationsPlanned, targetRateAt } from '../lib/plan.js';
import { PROFILES, profileBuild } from '../lib/profiles.js';
import { settingsDiffer } from '../lib/settings.js';
import { sourceChoose } from '../lib/source.js';
import { dateOf, dayOf, nightsNeeded, slotBooking } from '../lib/slots.js';
import { summaryBuild } from '../lib/summary.js';
import { journeyStep } from '../scenarios/journey.js';
import { completes, equals, throwsWith } from './expect.js';

export const options = { thresholds: { checks: ['rate==1.00'] } };

export default function () {
  completes(envDefaultsAndMistakes);
  completes(durationsAndSettings);
  completes(sourceOfSetup);
  completes(profilesSmokeAndArrival);
  completes(profilesOfTheArticle);
  completes(profileMistakes);
  completes(planArithmetic);
  completes(optionsOfK6);
  completes(journeyRatio);
  completes(slotsUnique);
  completes(slotsEnd);
  completes(leaseRanges);
  completes(leaseCandidates);
  completes(summaryOfARun);
}

/** @param {Record<string, string>} variables */
const env = (variables) => envRead(variables, PROFILES);

function envDefaultsAndMistakes() {
  const plain = env({});
  equals('env: smoke is the default', [plain.profile, plain.scenario], ['smoke', 'journey']);
  equals('env: the default target', plain.baseUrl, 'http://127.0.0.1:8080');
  equals('env: no file unless asked for', plain.summaryPath, '');
  equals('env: empty means absent', env({ PROFILE: '', RATE: '' }).profile, 'smoke');
  equals('env: timeout in ms', env({ CLIENT_TIMEOUT: '5' }).clientTimeoutMs, 5000);
  equals('env: slashes cut', env({ BASE_URL: 'http://a:1//' }).baseUrl, 'http://a:1');
  throwsWith('env: unknown profile', () => env({ PROFILE: 'x' }), ['PROFILE=x', ...PROFILES]);
  const scenarios = ['SCENARIO=x', 'journey', 'list', 'detail', 'booking'];
  throwsWith('env: unknown scenario', () => env({ SCENARIO: 'x' }), scenarios);
  throwsWith('env: bad address', () => env({ BASE_URL: 'a' }), ['BASE_URL=a', 'http://']);
  throwsWith('env: bad timeout', () => env({ CLIENT_TIMEOUT: '0' }), ['=0', '1..3600']);
  for (const name of ['K6_VUS', 'K6_DURATION', 'K6_ITERATIONS', 'K6_STAGES']) {
    throwsWith(`env: ${name} refused`, () => env({ [name]: '1' }), [name, 'drop', 'PROFILE']);
  }
  throwsWith('env: no source', () => env({ EXPECT_SETTINGS: 'A=1' }), ['SETTINGS_URL']);
  throwsWith('env: no token', () => env({ SETTINGS_URL: 'http://a/' }), ['LAB_TOKEN']);
}

function durationsAndSettings() {
  equals(
    'duration: each unit',
    ['90s', '5m', '2h', '500ms'].map(durationParse),
    [90, 300, 7200, 0.5],
  );
  equals('duration: combined', durationParse('1h30m5s'), 5405);
  equals(
    'duration: not one',
    ['', '5', 'm', '-5s', '5d', '5s x'].map(durationParse).every(isNaN),
    true,
  );
  equals('settings: list in a value', settingsParse('A=0-2,5,B_C=x'), { A: '0-2,5', B_C: 'x' });
  throwsWith('settings: malformed', () => settingsParse('fast'), ['"fast"', 'LAB_DETAIL=naive']);
  equals('settings: numbers as text', settingsDiffer({ A: '2' }, { A: 2, B: 3 }), []);
  equals('settings: differences', settingsDiffer({ A: '1', C: '1' }, { A: 2 }).length, 2);
  const date = new Date('2026-01-02T03:04:05.678Z');
  equals('testid', testidDefault('hold', 'list', date), 'hold-list-20260102T030405Z');
}

function sourceOfSetup() {
  const baseUrl = 'http://a:1';
  const through = sourceChoose({ baseUrl, settingsUrl: '', labToken: '' }, 'x y');
  equals('source: the target', through, { origin: baseUrl, query: '?setup=x%20y', headers: {} });
  const settingsUrl = 'http://b:2/lab/settings';
  const past = sourceChoose({ baseUrl, settingsUrl, labToken: 't' }, 'x');
  const headers = { 'X-Lab-Token': 't' };
  equals('source: past the caches', past, { origin: 'http://b:2', query: '', headers });
}

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

/** @param {import('../lib/profiles.js').Profile} profile */
function vusOf(profile) {
  const executor = /** @type {any} */ (profile.executor);
  return [executor.preAllocatedVUs, executor.maxVUs];
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
  equals('planned: closed, by its pause', iterationsPlanned(profileBuild('smoke', {}), 1), 105);
}

function optionsOfK6() {
  const hold = { PROFILE: 'hold', SCENARIO: 'list', CLIENT_TIMEOUT: '7' };
  const built = optionsBuild(env(hold), profileBuild('hold', {}));
  const scenario = /** @type {any} */ (built.scenarios).list;
  equals('options: scenario', [scenario.exec, scenario.gracefulStop], ['list', '8000ms']);
  equals('options: no url tag', JSON.stringify(built.systemTags).includes('url'), false);
  const thresholds = Object.values(built.thresholds || {});
  equals('options: a measurement judges nothing', thresholds.flat(), []);
  const smoke = optionsBuild(env({}), profileBuild('smoke', {}));
  equals('options: smoke judges', (smoke.thresholds || {}).checks, ['rate==1']);
}

function journeyRatio() {
  const hotels = 20;
  const steps = Array.from({ length: 2200 }, (_, i) => journeyStep(i, hotels).step);
  const times = (/** @type {number} */ wanted) => steps.filter((step) => step === wanted).length;
  equals('journey: each step as often', [times(0), times(7), times(hotels + 1)], [100, 100, 100]);
  equals('journey: no step beyond', Math.max(...steps), hotels + 1);
  equals('journey: counts journeys', journeyStep(45, hotels), { journey: 2, step: 1 });
}

/**
 * @param {number} firstDay
 * @param {number} nights
 * @returns {import('../lib/slots.js').Lease}
 */
function leaseOf(firstDay, nights) {
  const suites = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((id, i) => ({ id, guests: 1 + (i % 2) }));
  return { suites, customers: ['x', 'y', 'z'], firstDay, nights };
}

function slotsUnique() {
  const first = dayOf('2030-01-01');
  const seen = new Set();
  for (const lease of [leaseOf(first, 100), leaseOf(first + 100, 50)]) {
    for (let n = 0; n < lease.nights * lease.suites.length; n++) {
      const slot = slotBooking(lease, n);
      seen.add(slot && `${slot.suite} ${slot.check_in}`);
      if (slot && dayOf(slot.check_out) !== dayOf(slot.check_in) + 1) seen.clear();
    }
  }
  equals('slots: all different, one night each', seen.size, 150 * 7);
}

function slotsEnd() {
  const lease = leaseOf(dayOf('2030-12-31'), 2);
  const booking = {
    suite: 'b',
    check_in: '2030-12-31',
    check_out: '2031-01-01',
    customers: ['y', 'z'],
  };
  equals('slots: the booking', slotBooking(lease, 1), booking);
  equals(
    'slots: none past the lease',
    [slotBooking(lease, 13) === null, slotBooking(lease, 14)],
    [false, null],
  );
  equals('slots: nights', [nightsNeeded(700, 7), nightsNeeded(701, 7)], [101, 102]);
  equals('slots: dates and days', dateOf(dayOf('9999-12-31')), '9999-12-31');
}

function leaseRanges() {
  /** @type {number[][]} */
  const taken = [];
  const book = (/** @type {number} */ from, /** @type {number} */ to) => {
    if (to > dayOf('9999-12-31') || taken.some((range) => from < range[1] && range[0] < to))
      return false;
    taken.push([from, to]);
    return true;
  };
  for (let run = 0; run < 30; run++) leaseTake(300 + ((run * 37) % 200), dayOf('2030-01-01'), book);
  equals('lease: thirty runs, each with its own range', taken.length, 30);
  equals('lease: the first starts in 2030', taken[0][0], dayOf('2030-01-01'));
  equals('lease: a year at least', taken[0][1] - taken[0][0], 365);
  throwsWith('lease: bounded', () => leaseTake(400, 0, () => false), ['400 nights', 'Reset']);
  throwsWith('lease: calendar', () => leaseTake(9, dayOf('9999-12-30'), book), ['9999-12-31']);
}

function leaseCandidates() {
  const bookings = [{ check_out: '2031-05-01', customers: ['x', 'y'] }];
  const suite = (/** @type {string} */ id) => ({ id, capacity: id === '3' ? 1 : 4, bookings });
  const hotels = [
    { id: 'h2', suites: [suite('3'), suite('4')] },
    { id: 'h1', suites: [suite('2'), suite('1')] },
  ];
  const picked = candidatesPick(hotels);
  equals('candidates: sentinel by id', picked.sentinel, '1');
  equals(
    'candidates: sentinel never booked',
    picked.suites.map(({ id }) => id),
    ['2', '3', '4'],
  );
  equals(
    'candidates: guests fit',
    picked.suites.map(({ guests }) => guests),
    [2, 1, 2],
  );
  equals('candidates: after every booking', dateOf(picked.freeFrom), '2031-05-01');
  throwsWith('candidates: none', () => candidatesPick([{ id: 'h', suites: [] }]), ['Load']);
}

function summaryOfARun() {
  const variables = { PROFILE: 'hold', SUMMARY_PATH: 'out.json', TESTID: 't', LAB_TOKEN: 'hidden' };
  const stopped = { metrics: {}, state: { testRunDurationMs: 0 } };
  const outputs = summaryBuild(env(variables), profileBuild('hold', {}), stopped);
  const { lab } = JSON.parse(outputs['out.json']);
  equals('summary: plan', lab.plan, [{ duration_seconds: 300, from: 50, to: 50 }]);
  equals('summary: stopped', [lab.testid, lab.setup_completed], ['t', false]);
  equals('summary: says so', outputs.stdout.includes('setup stopped'), true);
  equals('summary: no token', outputs['out.json'].includes('hidden'), false);
  const setup_data = { testid: 'tag', setupSeconds: 4, hotels: ['h'], settings: null };
  const full = { metrics: {}, setup_data, state: { testRunDurationMs: 14000 } };
  const text = summaryBuild(env({}), profileBuild('smoke', {}), full);
  equals('summary: only text unless asked', Object.keys(text), ['stdout']);
  equals('summary: setup is no load', text.stdout.includes('in 10.0 s'), true);
  equals('summary: the testid in force', text.stdout.includes('testid tag'), true);
}
