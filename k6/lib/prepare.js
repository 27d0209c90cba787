// @ts-check
// The work of setup(): stop unless the target has the expected settings, then do what the scenario
// needs before its load. One k6 may prepare for several (prepare.js), which then start together.

import { sleep } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { verifySettings } from './settings.js';
import { params, requireStatus } from './setup_requests.js';

/** @typedef {import('./env.js').Env} Env */

// Shorter than setupTimeout (options.js).
const MAX_WAIT_MS = 30 * 60 * 1000;

/**
 * Data that setup() returns to every VU; a scenario's setup adds its own.
 * @typedef {object} Prepared
 * @property {string} testid
 * @property {string} load for which load this was prepared
 * @property {Record<string, unknown> | null} settings null when SETTINGS_URL is not set
 */

/**
 * @param {Env} env
 * @param {import('./profiles.js').Profile} profile
 * @param {import('./scenario').Setup} setup
 * @returns {Prepared}
 */
export function prepareTarget(env, profile, setup) {
  const settings = verifySettings(env);
  const testid = activeTestid(env);
  const data = setup.prepare(env, profile, testid);
  return { ...data, testid, settings, load: loadText(env, profile, testid) };
}

/**
 * Return what must be equal in all generators of a load.
 * @param {Env} env
 * @param {import('./profiles.js').Profile} profile
 * @param {string} testid
 */
function loadText(env, { name, plan, maxVUs, durationSeconds, generators }, testid) {
  const { scenario, baseUrl, boundMs } = env;
  const all = {
    name,
    scenario,
    baseUrl,
    boundMs,
    plan,
    maxVUs,
    durationSeconds,
    generators,
    testid,
  };
  return JSON.stringify(all);
}

/**
 * Return what prepare.js wrote to a file.
 * @param {Env} env
 * @param {import('./profiles.js').Profile} profile
 * @param {Prepared} prepared
 */
export function requirePreparedLoad(env, profile, prepared) {
  const load = loadText(env, profile, activeTestid(env));
  if (prepared.load === load) return prepared;
  throw new Error(
    `PREPARED=${env.preparedPath} is for another load: ${prepared.load}, but this is ${load}. ` +
      'Give all generators the same variables as prepare.js, TESTID too.',
  );
}

/**
 * Wait for the moment at which all generators start. Clocks are equal on one machine, and with NTP
 * within milliseconds on several.
 * @param {Env} env
 */
export function waitForStart(env) {
  const startAtMs = env.startUrl ? requestStart(env) : env.startAtMs;
  if (!startAtMs) return;
  const leftMs = startAtMs - Date.now();
  if (leftMs < 0) {
    const advice = env.startUrl ? '' : ' Choose a later START_AT for all generators.';
    const late = (-leftMs / 1000).toFixed(1);
    throw new Error(`The load began ${late} s ago, before this generator was ready.${advice}`);
  }
  if (leftMs > MAX_WAIT_MS) {
    throw new Error(
      `START_AT is ${Math.round(leftMs / 1000)} s from now, longer than setup() may take. ` +
        'Set it like START_AT=$(($(date +%s) + 120)).',
    );
  }
  sleep(leftMs / 1000);
}

/** @param {Env} env */
function requestStart(env) {
  // The others may create thousands of virtual users first.
  const response = http.get(env.startUrl, { ...params('setup_start', env), timeout: '10m' });
  requireStatus(response, 200, 'Another generator did not get ready.');
  return Number(response.body) * 1000;
}

/**
 * Return the id in force: `--tag testid=…` replaces options.tags, but not our env.
 * @param {Env} env
 */
function activeTestid(env) {
  return exec.test.options.tags?.testid || env.testid;
}
