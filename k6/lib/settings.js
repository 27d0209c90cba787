// @ts-check
// The settings that the target's backend reports at SETTINGS_URL, compared with EXPECT_SETTINGS.

import http from 'k6/http';
import { params, readBody, requireStatus } from './setup_requests.js';

/** @typedef {import('./env.js').Env} Env */

/**
 * Return the settings of the target; null without SETTINGS_URL.
 * @param {Env} env
 * @returns {Record<string, unknown> | null}
 */
export function verifySettings(env) {
  if (!env.settingsUrl) return null;
  const response = http.get(env.settingsUrl, {
    ...params('setup_settings', env),
    headers: { 'X-Lab-Token': env.labToken },
  });
  requireStatus(response, 200, 'Check SETTINGS_URL (the backend itself, not Nginx) and LAB_TOKEN.');
  const { settings } = readBody(response);
  const differences = settingDifferences(env.expectSettings, settings || {});
  if (differences.length > 0) {
    throw new Error(
      `The target's settings are not those of EXPECT_SETTINGS: ${differences.join('; ')}. ` +
        'Change them on the target (lab set), or correct EXPECT_SETTINGS.',
    );
  }
  return settings;
}

/**
 * @param {Record<string, string>} expected
 * @param {Record<string, unknown>} active the backend may return numbers as numbers
 * @returns {string[]} one sentence per difference
 */
export function settingDifferences(expected, active) {
  return Object.keys(expected)
    .filter((name) => String(active[name]) !== expected[name])
    .map((name) =>
      name in active
        ? `${name} is ${active[name]}, expected ${expected[name]}`
        : `${name} is not among the target's settings`,
    );
}
