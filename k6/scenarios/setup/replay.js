// @ts-check
// Setup and summary of the scenario `replay`: every operation must respond as the mix says.

import exec from 'k6/execution';
import http from 'k6/http';
import { buildOperation } from '../replay.js';

/** @typedef {import('../../lib/env.js').Env} Env */
/** @typedef {import('../../lib/mix.js').Mix} Mix */
/** @typedef {import('../../lib/profiles.js').Profile} Profile */
/** @typedef {import('../replay.js').Operation} Operation */

// Requests at the same time.
const BATCH = 4;
const NAMED_FAILURES = 5;

/**
 * @param {Env} env
 * @param {Profile} profile
 */
export function prepare(env, profile) {
  rejectHttpDebug(env);
  rejectExpiry(env, profile);
  /** @type {Mix} */
  const { operations } = env.options.mix;
  const failures = [];
  for (let first = 0; first < operations.length; first += BATCH) {
    const batch = operations.slice(first, first + BATCH).map((part) => buildOperation(env, part));
    failures.push(...requestBatch(env, batch));
  }
  if (failures.length > 0) throw new Error(failureMessage(failures, operations.length));
  return {};
}

/** @param {Env} env */
function rejectHttpDebug({ options }) {
  const { httpDebug } = /** @type {any} */ (exec.test.options);
  if (!httpDebug || Object.keys(options.headers).length === 0) return;
  throw new Error(
    `--http-debug=${httpDebug} would log TARGET_HEADERS. Remove it (K6_HTTP_DEBUG), or TARGET_HEADERS.`,
  );
}

/**
 * Reject a load that its token does not outlive: the rest of it would measure refusals.
 * @param {Env} env
 * @param {Profile} profile
 */
function rejectExpiry({ options }, { durationSeconds }) {
  const left = Math.floor(options.expires - Date.now() / 1000);
  if (left >= durationSeconds) return;
  throw new Error(
    `The target's token expires in ${left} s, and the load takes ${durationSeconds} s. ` +
      'Shorten it (DURATION, --duration), or let the token live longer.',
  );
}

/**
 * Send the first request of each operation.
 * @param {Env} env
 * @param {Operation[]} batch
 * @returns {string[]} a text for each unexpected response
 */
function requestBatch(env, batch) {
  const responses = http.batch(batch.map((operation) => setupRequest(env, operation)));
  return batch.flatMap(({ name, family, isExpected }, i) => {
    const { status, error } = responses[i];
    if (isExpected(status)) return [];
    return [`${name}: ${status || `no response (${error})`}, expected ${family}xx`];
  });
}

/**
 * @param {Env} env
 * @param {Operation} operation
 * @returns {import('k6/http').ObjectBatchRequest}
 */
function setupRequest({ baseUrl, options }, { method, first, params }) {
  const { path, body } = options.mix.requests[first];
  const tags = { name: 'setup_operation' };
  return {
    method,
    url: baseUrl + path,
    body: body || null,
    params: { ...params, tags, jar: new http.CookieJar() },
  };
}

/**
 * @param {string[]} failures
 * @param {number} operations
 */
export function failureMessage(failures, operations) {
  const named = failures.slice(0, NAMED_FAILURES);
  const rest = failures.length - named.length;
  return (
    `${failures.length} of ${operations} operations did not respond as the mix says: ` +
    `${named.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}. ` +
    'Make the mix again: lab mix make NAME.'
  );
}

/** @param {Env} env */
export function describe({ options }) {
  return { operations: options.mix.operations.length };
}
