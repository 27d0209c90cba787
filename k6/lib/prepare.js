// @ts-check
// The work of setup(): stop unless the target has the expected settings, then do what the scenario
// needs before its load.

import exec from 'k6/execution';
import { verifySettings } from './settings.js';

/** @typedef {import('./env.js').Env} Env */

/**
 * Data that setup() returns to every VU; a scenario's setup adds its own.
 * @typedef {object} Prepared
 * @property {string} testid
 * @property {number} setupSeconds
 * @property {Record<string, unknown> | null} settings null when SETTINGS_URL is not set
 */

/**
 * @param {Env} env
 * @param {import('./profiles.js').Profile} profile
 * @param {import('./scenario').Setup} setup
 * @returns {Prepared}
 */
export function prepareTarget(env, profile, setup) {
  const startedAt = Date.now();
  const settings = verifySettings(env);
  const testid = activeTestid(env);
  const data = setup.prepare(env, profile, testid);
  return { ...data, testid, settings, setupSeconds: (Date.now() - startedAt) / 1000 };
}

/**
 * Return the id in force: `--tag testid=…` replaces options.tags, but not our env.
 * @param {Env} env
 */
function activeTestid(env) {
  return exec.test.options.tags?.testid || env.testid;
}
