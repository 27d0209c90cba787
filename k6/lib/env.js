// @ts-check
// The only module that reads the environment. It takes the variables as an object, so that tests
// can pass their own. Every mistake stops k6 before the first request.

import { ROUTES } from './workbench.js';

/** @param {number} value k6 accepts fractions: 1.5s */
export function seconds(value) {
  return `${value}s`;
}

export const SCENARIOS = [
  ...['journey', 'list', 'detail', 'booking', 'staleness', 'workbench', 'availability', 'faults'],
];

// Scenarios that require a particular profile, and the reason.
/** @type {Record<string, { profile: string, because: string }>} */
const NEEDS = {
  staleness: {
    profile: 'smoke',
    because: 'it asks until it sees, so no rate can be planned. Run the load beside it',
  },
  availability: { profile: 'hold', because: 'its bookings come at RATE, whatever the sockets do' },
  faults: { profile: 'hold', because: 'it goes on at RATE, whatever breaks' },
};

// Variables that only one scenario reads.
/** @type {Record<string, string>} */
const READ_BY = {
  STALENESS_BOUND: 'staleness',
  ROUTE: 'workbench',
  RETRIES: 'workbench',
  CONNECTIONS: 'availability',
  JOURNEY_HOTELS: 'journey',
};

// If one of these is set, k6 replaces the script's scenarios with its own shortcut.
const K6_SHORTCUTS = ['K6_VUS', 'K6_DURATION', 'K6_ITERATIONS', 'K6_STAGES'];

const DURATION_UNITS = { h: 3600, m: 60, s: 1, ms: 0.001 };

/** @typedef {Record<string, string | undefined>} Variables */

/**
 * @typedef {object} Env
 * @property {string} profile
 * @property {string} scenario
 * @property {string} baseUrl without a trailing slash
 * @property {number} clientTimeoutMs
 * @property {number} boundMs time limit: a slower response is of no use to a visitor
 * @property {number} stalenessBoundMs time limit: after it a booking counts as unseen
 * @property {string} route of the workbench; empty in other scenarios
 * @property {number} retries maximum number of retries of a failed request
 * @property {number} connections number of open WebSockets
 * @property {number} journeyHotels hotels that a visitor opens, at most; 0: all
 * @property {string} testid
 * @property {string} summaryPath empty: no file is written
 * @property {string} settingsUrl empty: the settings are not read
 * @property {string} labToken
 * @property {Record<string, string>} expectSettings
 */

/**
 * @param {Variables} variables
 * @param {string[]} profiles
 * @returns {Env}
 */
export function envRead(variables, profiles) {
  k6ShortcutsRefuse(variables);
  const profile = envChoice(variables, 'PROFILE', profiles, 'smoke');
  const scenario = envChoice(variables, 'SCENARIO', SCENARIOS, 'journey');
  scenarioFits(variables, profile, scenario);
  const env = {
    profile,
    scenario,
    baseUrl: envUrl(variables, 'BASE_URL', 'http://127.0.0.1:8080').replace(/\/+$/, ''),
    clientTimeoutMs: envInteger(variables, 'CLIENT_TIMEOUT', 60, 1, 3600) * 1000,
    boundMs: envInteger(variables, 'RESPONSE_TIME_BOUND', 1000, 1, 3600000),
    // At most 100 s: the smoke profile's gracefulStop is 2 min.
    stalenessBoundMs: envInteger(variables, 'STALENESS_BOUND', 10, 1, 100) * 1000,
    route: scenario === 'workbench' ? envChoice(variables, 'ROUTE', Object.keys(ROUTES), '') : '',
    retries: envInteger(variables, 'RETRIES', 0, 0, 10),
    connections: envInteger(variables, 'CONNECTIONS', 100, 1, 20000),
    journeyHotels: envInteger(variables, 'JOURNEY_HOTELS', 0, 1, 100000),
    testid: variables.TESTID || testidDefault(profile, scenario, new Date()),
    summaryPath: variables.SUMMARY_PATH || '',
    settingsUrl: envUrl(variables, 'SETTINGS_URL', ''),
    labToken: variables.LAB_TOKEN || '',
    expectSettings: settingsParse(variables.EXPECT_SETTINGS || ''),
  };
  settingsSourceRequire(env);
  return env;
}

/** @param {Variables} variables */
function k6ShortcutsRefuse(variables) {
  const found = K6_SHORTCUTS.filter((name) => variables[name]);
  if (found.length === 0) return;
  throw new Error(
    `${found.join(', ')} is set: k6 would drop this script's scenarios. ` +
      'Unset it and use PROFILE, VUS, RATE and DURATION instead.',
  );
}

/**
 * @param {Variables} variables
 * @param {string} name
 * @param {string[]} allowed
 * @param {string} fallback
 */
function envChoice(variables, name, allowed, fallback) {
  const value = variables[name] || fallback;
  if (allowed.includes(value)) return value;
  throw new Error(`${name}=${value} is unknown. Set it to one of: ${allowed.join(', ')}.`);
}

/**
 * @param {Variables} variables
 * @param {string} name
 * @param {string} fallback
 */
function envUrl(variables, name, fallback) {
  const value = variables[name] || fallback;
  if (value === '' || /^https?:\/\/[^/\s]+\S*$/.test(value)) return value;
  throw new Error(`${name}=${value} is not an address. Set it like ${name}=http://127.0.0.1:8080.`);
}

/**
 * @param {Variables} variables
 * @param {string} name
 * @param {number} fallback
 * @param {number} min
 * @param {number} max
 */
export function envInteger(variables, name, fallback, min, max) {
  const text = variables[name];
  if (!text) return fallback;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new Error(`${name}=${text} is out of range. Set it to a whole number ${min}..${max}.`);
}

/**
 * @param {Variables} variables
 * @param {string} name
 * @param {number} fallback
 * @param {number} min
 * @param {number} max
 */
export function envDecimal(variables, name, fallback, min, max) {
  const text = variables[name];
  if (!text) return fallback;
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value >= min && value <= max) return value;
  throw new Error(`${name}=${text} is out of range. Set it to a number ${min}..${max}.`);
}

/**
 * @param {Variables} variables
 * @param {string} profile
 * @param {string} scenario
 */
function scenarioFits(variables, profile, scenario) {
  const need = NEEDS[scenario];
  if (need && profile !== need.profile) {
    throw new Error(`SCENARIO=${scenario} needs PROFILE=${need.profile}: ${need.because}.`);
  }
  for (const [name, reader] of Object.entries(READ_BY)) {
    if (variables[name] && scenario !== reader) {
      throw new Error(`${name} is of use with SCENARIO=${reader} only. Unset it.`);
    }
  }
}

/**
 * Return the seconds of a duration in k6's format: 90s, 5m, 1h30m, 500ms.
 * @param {Variables} variables
 * @param {string} name
 * @param {number} fallback
 */
export function envDuration(variables, name, fallback) {
  const text = variables[name];
  if (!text) return fallback;
  const seconds = durationParse(text);
  if (seconds >= 1 && seconds <= 86400) return seconds;
  throw new Error(`${name}=${text} is no duration of 1s..24h. Set it like 90s, 5m or 1h30m.`);
}

/**
 * @param {string} text
 * @returns {number} NaN if it is not a duration
 */
export function durationParse(text) {
  if (!/^(\d+(\.\d+)?(h|ms|m|s))+$/.test(text)) return NaN;
  let seconds = 0;
  for (const [, amount, unit] of text.matchAll(/([\d.]+)(h|ms|m|s)/g)) {
    seconds += Number(amount) * DURATION_UNITS[/** @type {'h'} */ (unit)];
  }
  return seconds;
}

/**
 * A comma starts a new setting only before `NAME=`: LAB_TARGET_CPUS=0-2,5 is one value.
 * @param {string} text
 * @returns {Record<string, string>}
 */
export function settingsParse(text) {
  /** @type {Record<string, string>} */
  const settings = {};
  for (const pair of text ? text.split(/,(?=\s*[A-Z][A-Z0-9_]*=)/) : []) {
    const [, name, value] = pair.trim().match(/^([A-Z][A-Z0-9_]*)=(.*)$/) || [];
    if (!name) {
      throw new Error(
        `EXPECT_SETTINGS holds "${pair}". Set it like LAB_DETAIL=naive,LAB_SHED=off.`,
      );
    }
    settings[name] = value;
  }
  return settings;
}

/** @param {Env} env */
function settingsSourceRequire({ settingsUrl, labToken, expectSettings }) {
  const wanted = Object.keys(expectSettings).length > 0;
  if (wanted && !settingsUrl) {
    throw new Error('EXPECT_SETTINGS needs SETTINGS_URL: the backend address of /lab/settings.');
  }
  if (settingsUrl && !labToken) {
    throw new Error('SETTINGS_URL needs LAB_TOKEN: without it the backend answers 404.');
  }
}

/**
 * @param {string} profile
 * @param {string} scenario
 * @param {Date} date
 */
export function testidDefault(profile, scenario, date) {
  return `${profile}-${scenario}-${date.toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`;
}
