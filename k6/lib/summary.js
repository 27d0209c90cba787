// @ts-check
// What a run leaves behind: a page of text, and with SUMMARY_PATH a JSON for the lab to read.
import { summaryText } from './summary-text.js';

/** @typedef {import('./env.js').Env} Env */
/** @typedef {import('./profiles.js').Profile} Profile */
/** @typedef {ReturnType<typeof labDescribe>} LabPart */

/**
 * @param {Env} env
 * @param {Profile} profile
 * @param {any} data k6's summary; after a setup that stopped it holds next to nothing
 * @returns {Record<string, string>} by destination
 */
export function summaryBuild(env, profile, data) {
  const lab = labDescribe(env, profile, data);
  /** @type {Record<string, string>} */
  const outputs = { stdout: summaryText(lab, data) };
  if (env.summaryPath) {
    const { metrics, state } = data;
    outputs[env.summaryPath] = JSON.stringify({ lab, metrics, state }, null, 2) + '\n';
  }
  return outputs;
}

/**
 * @param {Env} env
 * @param {Profile} profile
 * @param {any} data
 */
export function labDescribe(env, profile, data) {
  const prepared = data.setup_data || null;
  return {
    testid: prepared ? prepared.testid : env.testid,
    profile: profile.name,
    scenario: env.scenario,
    route: env.route || null,
    base_url: env.baseUrl,
    unit: profile.unit,
    plan: profile.plan,
    max_vus: profile.maxVUs,
    duration_seconds: profile.durationSeconds,
    client_timeout_seconds: env.clientTimeoutMs / 1000,
    response_time_bound_ms: env.boundMs,
    started_at_seconds: startedAt(data),
    load_seconds: prepared ? loadSeconds(data) : null,
    hotels: (prepared && prepared.hotels.length) || null,
    settings: prepared ? prepared.settings : null,
    setup_completed: prepared !== null,
  };
}

/**
 * @param {any} data
 * @returns {number | null} Unix time at which the plan began
 */
function startedAt(data) {
  const gauge = data.metrics && data.metrics.lab_scenario_start_seconds;
  return gauge ? gauge.values.value : null;
}

/**
 * k6's rates divide by the whole run; this leaves setup out, and includes the last answers.
 * @param {any} data
 */
function loadSeconds({ metrics, setup_data, state }) {
  if (metrics.lab_load_seconds) return metrics.lab_load_seconds.values.value;
  return state.testRunDurationMs / 1000 - setup_data.setupSeconds;
}
