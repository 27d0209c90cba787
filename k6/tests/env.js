// @ts-check
// Input of a run: variables, settings and setup's source. Output: its summary.
import { buildSetup, chooseSource } from '../hotel/setup.js';
import {
  defaultTestid,
  parseDuration,
  parseSettings,
  readEnv,
  rejectForeignVariables,
} from '../lib/env.js';
import { PROFILES, buildProfile, profileFor } from '../lib/profiles.js';
import { settingDifferences } from '../lib/settings.js';
import { buildSummary } from '../lib/summary.js';
import { SCENARIOS } from '../scenarios/index.js';
import { expectEqual, expectError } from './expect.js';

export const cases = [
  envDefaultsAndErrors,
  segments,
  durationsAndSettings,
  setupSource,
  runSummary,
];

// k6 loads modules only before the tests.
const modules = Object.entries(SCENARIOS).map(([name, load]) => [name, load()]);
const scenarios = Object.fromEntries(modules.map(([name, module]) => [name, () => module]));

/** @param {Record<string, string>} variables */
export function env(variables) {
  const result = readEnv(variables, PROFILES, scenarios);
  rejectForeignVariables(variables, result.scenario, scenarios);
  return result;
}

/** @param {Record<string, string>} variables */
export function profile(variables) {
  const result = env(variables);
  return profileFor(result, scenarios[result.scenario](), variables);
}

function envDefaultsAndErrors() {
  const defaults = env({});
  expectEqual(
    'env: smoke is the default',
    [defaults.profile, defaults.scenario],
    ['smoke', 'journey'],
  );
  expectEqual('env: the default target', defaults.baseUrl, 'http://127.0.0.1:8080');
  expectEqual('env: no summary file by default', defaults.summaryPath, '');
  expectEqual('env: empty means absent', env({ PROFILE: '', RATE: '' }).profile, 'smoke');
  expectEqual('env: timeout in ms', env({ CLIENT_TIMEOUT: '5' }).clientTimeoutMs, 5000);
  expectEqual('env: slashes cut', env({ BASE_URL: 'http://a:1//' }).baseUrl, 'http://a:1');
  expectError('env: unknown profile', () => env({ PROFILE: 'x' }), ['PROFILE=x', ...PROFILES]);
  const scenarios = [
    'SCENARIO=x',
    'journey',
    'list',
    'detail',
    'booking',
    'staleness',
    'workbench',
    'availability',
  ];
  expectError('env: unknown scenario', () => env({ SCENARIO: 'x' }), scenarios);
  expectError('env: bad address', () => env({ BASE_URL: 'a' }), ['BASE_URL=a', 'http://']);
  expectError('env: bad timeout', () => env({ CLIENT_TIMEOUT: '0' }), ['=0', '1..3600']);
  for (const name of ['K6_VUS', 'K6_DURATION', 'K6_ITERATIONS', 'K6_STAGES']) {
    expectError(`env: ${name} rejected`, () => env({ [name]: '1' }), [name, 'drop', 'PROFILE']);
  }
  expectError('env: no source', () => env({ EXPECT_SETTINGS: 'A=1' }), ['SETTINGS_URL']);
  expectError('env: no token', () => env({ SETTINGS_URL: 'http://a/' }), ['LAB_TOKEN']);
}

function segments() {
  const second = env({ SEGMENT: '2/4', START_AT: '1800000000.5' });
  expectEqual('segment: number', [second.generator, second.generators], [2, 4]);
  expectEqual('segment: start in ms', second.startAtMs, 1800000000500);
  const alone = env({});
  expectEqual('segment: none', [alone.generator, alone.generators, alone.startAtMs], [0, 1, 0]);
  for (const SEGMENT of ['0/4', '5/4', '2', '1/2/3', '1/1001']) {
    expectError(`segment: ${SEGMENT}`, () => env({ SEGMENT }), [SEGMENT, 'SEGMENT=2/4']);
  }
  const differing = { SEGMENT: '2/4', GENERATORS: '3' };
  expectError('segment: other number', () => env(differing), ['2/4', 'GENERATORS=3']);
  expectError('start: no time', () => env({ START_AT: 'soon' }), ['START_AT=soon', 'date +%s']);
  const single = { PROFILE: 'hold', SCENARIO: 'availability', GENERATORS: '2' };
  expectError('segment: one VU', () => profile(single), ['availability', 'a single generator']);
}

function durationsAndSettings() {
  expectEqual(
    'duration: each unit',
    ['90s', '5m', '2h', '500ms'].map(parseDuration),
    [90, 300, 7200, 0.5],
  );
  expectEqual('duration: combined', parseDuration('1h30m5s'), 5405);
  expectEqual(
    'duration: malformed',
    ['', '5', 'm', '-5s', '5d', '5s x'].map(parseDuration).every(isNaN),
    true,
  );
  expectEqual('settings: list in a value', parseSettings('A=0-2,5,B_C=x'), {
    A: '0-2,5',
    B_C: 'x',
  });
  expectError('settings: malformed', () => parseSettings('fast'), ['"fast"', 'LAB_DETAIL=naive']);
  expectEqual('settings: numbers as text', settingDifferences({ A: '2' }, { A: 2, B: 3 }), []);
  expectEqual('settings: differences', settingDifferences({ A: '1', C: '1' }, { A: 2 }).length, 2);
  const date = new Date('2026-01-02T03:04:05.678Z');
  expectEqual('testid', defaultTestid('hold', 'list', date), 'hold-list-20260102T030405Z');
}

function setupSource() {
  const baseUrl = 'http://a:1';
  const viaTarget = chooseSource({ baseUrl, settingsUrl: '', labToken: '' }, 'x y');
  expectEqual('source: the target', viaTarget, {
    origin: baseUrl,
    query: '?setup=x%20y',
    headers: {},
  });
  const settingsUrl = 'http://b:2/lab/settings';
  const viaBackend = chooseSource({ baseUrl, settingsUrl, labToken: 't' }, 'x');
  const headers = { 'X-Lab-Token': 't' };
  expectEqual('source: bypasses the caches', viaBackend, {
    origin: 'http://b:2',
    query: '',
    headers,
  });
}

function runSummary() {
  const variables = { PROFILE: 'hold', SUMMARY_PATH: 'out.json', TESTID: 't', LAB_TOKEN: 'hidden' };
  const setup = buildSetup({ books: 'nothing' });
  const stopped = { metrics: {}, state: { testRunDurationMs: 0 } };
  const outputs = buildSummary(env(variables), buildProfile('hold', {}), setup, stopped);
  const { lab } = JSON.parse(outputs['out.json']);
  expectEqual('summary: plan', lab.plan, [{ duration_seconds: 300, from: 50, to: 50 }]);
  expectEqual('summary: stopped', [lab.testid, lab.setup_completed], ['t', false]);
  expectEqual(
    'summary: reports that setup stopped',
    outputs.stdout.includes('setup stopped'),
    true,
  );
  expectEqual('summary: no token', outputs['out.json'].includes('hidden'), false);
  const setup_data = { testid: 'tag', setupSeconds: 4, hotels: ['h'], settings: null };
  const completed = { metrics: {}, setup_data, state: { testRunDurationMs: 14000 } };
  const text = buildSummary(env({}), buildProfile('smoke', {}), setup, completed);
  expectEqual('summary: only text by default', Object.keys(text), ['stdout']);
  expectEqual('summary: bookings', text.stdout.includes('bookings    0 created'), true);
  expectEqual('summary: excludes setup', text.stdout.includes('in 10.0 s'), true);
  expectEqual('summary: active testid', text.stdout.includes('testid tag'), true);
}
