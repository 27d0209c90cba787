// @ts-check
// The only module that reads the environment. It takes the variables as an object, so that tests
// can pass their own. Every mistake stops k6 before the first request.

/** @param {number} value k6 accepts fractions: 1.5s */
export function seconds(value) {
  return `${value}s`;
}

// If one of these is set, k6 replaces the script's scenarios with its own shortcut.
const K6_SHORTCUTS = ['K6_VUS', 'K6_DURATION', 'K6_ITERATIONS', 'K6_STAGES'];

// More would be a mistake: each is a k6 process, and most would send nothing.
const MAX_GENERATORS = 1000;

const DURATION_UNITS = { h: 3600, m: 60, s: 1, ms: 0.001 };

/** @typedef {Record<string, string | undefined>} Variables */

/**
 * @typedef {object} Env
 * @property {string} profile
 * @property {string} scenario
 * @property {string} baseUrl without a trailing slash
 * @property {number} clientTimeoutMs
 * @property {number} boundMs time limit: a slower response is of no use to a visitor
 * @property {string} testid
 * @property {string} summaryPath empty: no file is written; `-`: a line in the output
 * @property {string} settingsUrl empty: the settings are not read
 * @property {string} labToken
 * @property {Record<string, string>} expectSettings
 * @property {number} generators how many share this load
 * @property {number} generator this one's number, from 1; 0: k6's own options say which part it sends
 * @property {string} preparedPath file of prepare.js; empty: setup() prepares
 * @property {number} startAtMs Unix time of the first arrival; 0: when setup() is done
 * @property {string} startUrl address that returns the start once all generators are ready
 * @property {any} options values of the scenario's own variables
 */

/** @typedef {import('./scenario').Scenario} Scenario */
/** @typedef {Record<string, () => Scenario>} Scenarios modules by name; the first is the default */

/**
 * @param {Variables} variables
 * @param {string[]} profiles
 * @param {Scenarios} scenarios
 * @returns {Env}
 */
export function readEnv(variables, profiles, scenarios) {
  rejectK6Shortcuts(variables);
  const names = Object.keys(scenarios);
  const profile = readChoice(variables, 'PROFILE', profiles, 'smoke');
  const scenario = readChoice(variables, 'SCENARIO', names, names[0]);
  const { requiredProfile, readOptions } = scenarios[scenario]();
  checkProfile(profile, scenario, requiredProfile);
  const env = {
    profile,
    scenario,
    baseUrl: readUrl(variables, 'BASE_URL', 'http://127.0.0.1:8080').replace(/\/+$/, ''),
    clientTimeoutMs: readInteger(variables, 'CLIENT_TIMEOUT', 60, 1, 3600) * 1000,
    boundMs: readInteger(variables, 'RESPONSE_TIME_BOUND', 1000, 1, 3600000),
    testid: variables.TESTID || defaultTestid(profile, scenario, new Date()),
    summaryPath: variables.SUMMARY_PATH || '',
    settingsUrl: readUrl(variables, 'SETTINGS_URL', ''),
    labToken: variables.LAB_TOKEN || '',
    expectSettings: parseSettings(variables.EXPECT_SETTINGS || ''),
    ...readGenerators(variables),
    preparedPath: variables.PREPARED || '',
    startAtMs: readMoment(variables, 'START_AT') * 1000,
    startUrl: readUrl(variables, 'START_URL', ''),
    options: readOptions ? readOptions(variables) : {},
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
export function readChoice(variables, name, allowed, fallback) {
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
 * SEGMENT=2/4: the second of four generators. With GENERATORS=4 alone, k6's --execution-segment says
 * which part this one sends; k6-operator sets it.
 * @param {Variables} variables
 */
function readGenerators(variables) {
  const generators = readInteger(variables, 'GENERATORS', 1, 1, MAX_GENERATORS);
  const text = variables.SEGMENT;
  if (!text) return { generators, generator: 0 };
  const [number, of] = /^\d+\/\d+$/.test(text) ? text.split('/').map(Number) : [0, 0];
  if (number < 1 || number > of || of > MAX_GENERATORS) {
    throw new Error(`SEGMENT=${text} is not a part of a load. Set it like SEGMENT=2/4.`);
  }
  if (variables.GENERATORS && generators !== of) {
    throw new Error(`SEGMENT=${text} and GENERATORS=${generators} differ. Unset GENERATORS.`);
  }
  return { generators: of, generator: number };
}

/**
 * Return a Unix time in seconds; 0 if it is not set.
 * @param {Variables} variables
 * @param {string} name
 */
function readMoment(variables, name) {
  const text = variables[name];
  if (!text) return 0;
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value > 1e9) return value;
  throw new Error(`${name}=${text} is not a Unix time. Set it like ${name}=$(($(date +%s) + 30)).`);
}

/**
 * @param {string} profile
 * @param {string} scenario
 * @param {Scenario['requiredProfile']} required
 */
function checkProfile(profile, scenario, required) {
  if (!required || profile === required.name) return;
  throw new Error(`SCENARIO=${scenario} requires PROFILE=${required.name}: ${required.because}.`);
}

/**
 * Reject variables of other scenarios. Loads every scenario's module.
 * @param {Variables} variables
 * @param {string} scenario
 * @param {Scenarios} scenarios
 */
export function rejectForeignVariables(variables, scenario, scenarios) {
  for (const [owner, load] of Object.entries(scenarios)) {
    const foreign = owner === scenario ? [] : load().variables || [];
    const name = foreign.find((each) => variables[each]);
    if (name) throw new Error(`${name} applies to SCENARIO=${owner} only. Unset it.`);
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
