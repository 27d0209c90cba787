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
const REQUIRED_PROFILES = {
  staleness: {
    profile: 'smoke',
    because:
      'it polls until the page shows the booking, so it has no planned rate. Run the load in a second k6',
  },
  availability: {
    profile: 'hold',
    because: 'it sends bookings at RATE, whatever happens to the sockets',
  },
  faults: { profile: 'hold', because: 'it continues at RATE during the fault' },
};

// Variables that only one scenario reads.
/** @type {Record<string, string>} */
const SCENARIO_VARIABLES = {
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
export function readEnv(variables, profiles) {
  rejectK6Shortcuts(variables);
  const profile = readChoice(variables, 'PROFILE', profiles, 'smoke');
  const scenario = readChoice(variables, 'SCENARIO', SCENARIOS, 'journey');
  checkScenario(variables, profile, scenario);
  const env = {
    profile,
    scenario,
    baseUrl: readUrl(variables, 'BASE_URL', 'http://127.0.0.1:8080').replace(/\/+$/, ''),
    clientTimeoutMs: readInteger(variables, 'CLIENT_TIMEOUT', 60, 1, 3600) * 1000,
    boundMs: readInteger(variables, 'RESPONSE_TIME_BOUND', 1000, 1, 3600000),
    // At most 100 s: the smoke profile's gracefulStop is 2 min.
    stalenessBoundMs: readInteger(variables, 'STALENESS_BOUND', 10, 1, 100) * 1000,
    route: scenario === 'workbench' ? readChoice(variables, 'ROUTE', Object.keys(ROUTES), '') : '',
    retries: readInteger(variables, 'RETRIES', 0, 0, 10),
    connections: readInteger(variables, 'CONNECTIONS', 100, 1, 20000),
    journeyHotels: readInteger(variables, 'JOURNEY_HOTELS', 0, 1, 100000),
    testid: variables.TESTID || defaultTestid(profile, scenario, new Date()),
    summaryPath: variables.SUMMARY_PATH || '',
    settingsUrl: readUrl(variables, 'SETTINGS_URL', ''),
    labToken: variables.LAB_TOKEN || '',
    expectSettings: parseSettings(variables.EXPECT_SETTINGS || ''),
  };
  checkSettingsSource(env);
  return env;
}

/** @param {Variables} variables */
function rejectK6Shortcuts(variables) {
  const shortcuts = K6_SHORTCUTS.filter((name) => variables[name]);
  if (shortcuts.length === 0) return;
  throw new Error(
    `${shortcuts.join(', ')} is set: k6 would drop this script's scenarios. ` +
      'Unset it and use PROFILE, VUS, RATE and DURATION instead.',
  );
}

/**
 * @param {Variables} variables
 * @param {string} name
 * @param {string[]} allowed
 * @param {string} fallback
 */
function readChoice(variables, name, allowed, fallback) {
  const value = variables[name] || fallback;
  if (allowed.includes(value)) return value;
  throw new Error(`${name}=${value} is unknown. Set it to one of: ${allowed.join(', ')}.`);
}

/**
 * @param {Variables} variables
 * @param {string} name
 * @param {string} fallback
 */
function readUrl(variables, name, fallback) {
  const value = variables[name] || fallback;
  if (value === '' || /^https?:\/\/[^/\s]+\S*$/.test(value)) return value;
  throw new Error(`${name}=${value} is not a URL. Set it like ${name}=http://127.0.0.1:8080.`);
}

/**
 * @param {Variables} variables
 * @param {string} name
 * @param {number} fallback
 * @param {number} min
 * @param {number} max
 */
export function readInteger(variables, name, fallback, min, max) {
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
export function readDecimal(variables, name, fallback, min, max) {
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
function checkScenario(variables, profile, scenario) {
  const requirement = REQUIRED_PROFILES[scenario];
  if (requirement && profile !== requirement.profile) {
    throw new Error(
      `SCENARIO=${scenario} requires PROFILE=${requirement.profile}: ${requirement.because}.`,
    );
  }
  for (const [name, owner] of Object.entries(SCENARIO_VARIABLES)) {
    if (variables[name] && scenario !== owner) {
      throw new Error(`${name} applies to SCENARIO=${owner} only. Unset it.`);
    }
  }
}

/**
 * Return the seconds of a duration in k6's format: 90s, 5m, 1h30m, 500ms.
 * @param {Variables} variables
 * @param {string} name
 * @param {number} fallback
 */
export function readDuration(variables, name, fallback) {
  const text = variables[name];
  if (!text) return fallback;
  const seconds = parseDuration(text);
  if (seconds >= 1 && seconds <= 86400) return seconds;
  throw new Error(`${name}=${text} is not a duration of 1s..24h. Set it like 90s, 5m or 1h30m.`);
}

/**
 * @param {string} text
 * @returns {number} NaN if it is not a duration
 */
export function parseDuration(text) {
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
export function parseSettings(text) {
  /** @type {Record<string, string>} */
  const settings = {};
  for (const pair of text ? text.split(/,(?=\s*[A-Z][A-Z0-9_]*=)/) : []) {
    const [, name, value] = pair.trim().match(/^([A-Z][A-Z0-9_]*)=(.*)$/) || [];
    if (!name) {
      throw new Error(
        `EXPECT_SETTINGS contains "${pair}". Set it like LAB_DETAIL=naive,LAB_SHED=off.`,
      );
    }
    settings[name] = value;
  }
  return settings;
}

/** @param {Env} env */
function checkSettingsSource({ settingsUrl, labToken, expectSettings }) {
  const hasExpectations = Object.keys(expectSettings).length > 0;
  if (hasExpectations && !settingsUrl) {
    throw new Error('EXPECT_SETTINGS requires SETTINGS_URL: the backend address of /lab/settings.');
  }
  if (settingsUrl && !labToken) {
    throw new Error('SETTINGS_URL requires LAB_TOKEN: without it the backend returns 404.');
  }
}

/**
 * @param {string} profile
 * @param {string} scenario
 * @param {Date} date
 */
export function defaultTestid(profile, scenario, date) {
  return `${profile}-${scenario}-${date.toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`;
}
