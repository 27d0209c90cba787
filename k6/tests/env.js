// @ts-check
// Input of a run: variables, settings and setup's source. Output: its summary.
import { durationParse, envRead, settingsParse, testidDefault } from '../lib/env.js';
import { settingsDiffer, sourceChoose } from '../lib/prepare.js';
import { PROFILES, profileBuild } from '../lib/profiles.js';
import { summaryBuild } from '../lib/summary.js';
import { equals, throwsWith } from './expect.js';

export const cases = [envDefaultsAndMistakes, durationsAndSettings, sourceOfSetup, summaryOfARun];

/** @param {Record<string, string>} variables */
export const env = (variables) => envRead(variables, PROFILES);

function envDefaultsAndMistakes() {
  const plain = env({});
  equals('env: smoke is the default', [plain.profile, plain.scenario], ['smoke', 'journey']);
  equals('env: the default target', plain.baseUrl, 'http://127.0.0.1:8080');
  equals('env: no file unless asked for', plain.summaryPath, '');
  equals('env: empty means absent', env({ PROFILE: '', RATE: '' }).profile, 'smoke');
  equals('env: timeout in ms', env({ CLIENT_TIMEOUT: '5' }).clientTimeoutMs, 5000);
  equals('env: slashes cut', env({ BASE_URL: 'http://a:1//' }).baseUrl, 'http://a:1');
  throwsWith('env: unknown profile', () => env({ PROFILE: 'x' }), ['PROFILE=x', ...PROFILES]);
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
