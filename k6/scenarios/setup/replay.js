// @ts-check
// Setup and summary of the scenario `replay`: every operation must respond as the mix says, and the
// load's objects are created.

import exec from 'k6/execution';
import http from 'k6/http';
import { fillRequest, uniqueText } from '../../lib/mix.js';
import { readId } from '../../lib/objects.js';
import { buildOperation, redirectPath } from '../../lib/operation.js';
import { hasLogin } from '../../lib/pages.js';

/** @typedef {import('../../lib/env.js').Env} Env */
/** @typedef {import('../../lib/mix.js').Mix} Mix */
/** @typedef {import('../../lib/mix.js').Part} Part */
/** @typedef {import('../../lib/objects.js').Plan} Plan */
/** @typedef {import('../../lib/profiles.js').Profile} Profile */
/** @typedef {import('../../lib/operation.js').Operation} Operation */

/**
 * An operation that did not respond as the mix says. Status 0: no response; `login`: the page asks
 * for one.
 * @typedef {{ name: string, text: string, status: number, login?: boolean }} Failure
 */

// Requests at the same time.
const BATCH = 4;
const NAMED_FAILURES = 5;
// Created objects after which the progress is reported.
const REPORTED = 100;

/**
 * Return the ids of the objects that the load changes or deletes.
 * @param {Env} env
 * @param {Profile} profile
 * @returns {{ objects: string[] }}
 */
export function prepare(env, profile) {
  rejectHttpDebug(env);
  rejectExpiry(env, profile);
  /** @type {Mix} */
  const mix = env.options.mix;
  /** @type {Plan | null} */
  const plan = env.options.plan;
  const operations = [...mix.operations];
  const sender = buildSender(env);
  requireExpected(
    sender,
    operations.filter(({ createdBy }) => !createdBy).map((part) => [part]),
  );
  if (!plan) return { objects: [] };
  const objects = createObjects(env, sender, plan);
  /** @type {[Part, string][]} */
  const trials = operations.flatMap((part, i) =>
    part.createdBy ? [[part, objects[plan.trials[i]]]] : [],
  );
  requireExpected(sender, trials);
  return { objects };
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

/** @typedef {ReturnType<typeof buildSender>} Sender */

/** @param {Env} env */
function buildSender(env) {
  const startMs = Date.now();
  let sent = 0;

  /**
   * @param {Operation} operation
   * @param {string} [id] of its object
   * @returns {import('k6/http').ObjectBatchRequest}
   */
  function setupRequest({ method, first, params }, id) {
    const unique = uniqueText(startMs, 's', sent++);
    const { path, body } = fillRequest(env.options.mix.requests[first], unique, id);
    const tags = { name: 'setup_operation' };
    const responseType = /** @type {const} */ ('text');
    const all = { ...params, tags, responseType, jar: new http.CookieJar() };
    return { method, url: env.baseUrl + path, body, params: all };
  }

  return {
    /**
     * Send the first request of each operation, at the same time.
     * @param {[Part, string?][]} batch operations with the ids of their objects
     */
    send(batch) {
      const operations = batch.map(([part]) => buildOperation(env, part));
      const requests = operations.map((operation, i) => setupRequest(operation, batch[i][1]));
      const responses = http.batch(requests);
      return operations.map((operation, i) => ({ operation, response: responses[i] }));
    },
  };
}

/**
 * Send the first request of each operation. Throws an error if one is not answered as expected.
 * @param {Sender} sender
 * @param {[Part, string?][]} trials
 */
function requireExpected(sender, trials) {
  const failures = [];
  for (let first = 0; first < trials.length; first += BATCH) {
    const answered = sender.send(trials.slice(first, first + BATCH));
    failures.push(...answered.flatMap(({ operation, response }) => failure(operation, response)));
  }
  if (failures.length > 0) throw new Error(failureMessage(failures, trials.length));
}

/**
 * @param {Operation} operation
 * @param {import('k6/http').Response} response
 * @returns {Failure[]} one if the response is unexpected
 */
function failure({ name, family, isExpected, page }, response) {
  const { status, error } = response;
  if (!isExpected(status)) {
    const to = redirectPath(response);
    const answer = status ? `${status}${to && ` to ${to}`}` : `no response (${error})`;
    return [{ name, text: `${name}: ${answer}, expected ${family}xx`, status }];
  }
  if (!page || page.has_login || !hasLogin(`${response.body || ''}`)) return [];
  const text = `${name}: ${status} with a login form that the page had not`;
  return [{ name, text, status, login: true }];
}

/**
 * @param {Env} env
 * @param {Sender} sender
 * @param {Plan} plan
 * @returns {string[]} ids of the plan's objects
 */
function createObjects(env, sender, { objects }) {
  /** @type {Mix} */
  const { creators } = env.options.mix;
  const byName = new Map([...creators].map((part) => [part.name, part]));
  const wanted = [...objects];
  /** @type {string[]} */
  const ids = [];
  for (let first = 0; first < wanted.length; first += BATCH) {
    const batch = wanted.slice(first, first + BATCH);
    const answered = sender.send(
      batch.map(({ operation }) => [/** @type {Part} */ (byName.get(operation))]),
    );
    ids.push(...answered.map(({ operation, response }, i) => idOf(operation, response, batch[i])));
    if (Math.floor(ids.length / REPORTED) > Math.floor(first / REPORTED)) {
      console.info(`${ids.length} of ${wanted.length} objects are created`);
    }
  }
  return ids;
}

/**
 * @param {Operation} operation
 * @param {import('k6/http').Response} response
 * @param {import('../../lib/mix.js').CreatedBy} createdBy
 */
function idOf(operation, response, { id_from }) {
  const failures = failure(operation, response);
  const id = failures.length > 0 ? '' : readId(response, id_from);
  if (id) return id;
  const [{ text } = { text: `${operation.name}: its answer has no ${id_from}` }] = failures;
  throw new Error(`An object for the load could not be created: ${text}. ${adviceFor(failures)}`);
}

/**
 * @param {Failure[]} failures
 * @param {number} operations
 */
export function failureMessage(failures, operations) {
  const named = failures.slice(0, NAMED_FAILURES).map(({ text }) => text);
  const rest = failures.length - named.length;
  return (
    `${failures.length} of ${operations} operations did not respond as the mix says: ` +
    `${named.join('; ')}${rest > 0 ? `; and ${rest} more` : ''}. ${adviceFor(failures)}` +
    withoutThem(failures, operations)
  );
}

/**
 * Return how to load the others, if few operations fail: a page may ask for the password again.
 * @param {Failure[]} failures
 * @param {number} operations
 */
function withoutThem(failures, operations) {
  const [{ name }] = failures;
  const few = failures.length / operations <= FEW;
  return few ? ` Or make it without such ones: lab mix make NAME --leave-out '${name}'.` : '';
}

/**
 * Return what helps, by the most frequent kind of failure. A new mix helps if addresses are gone.
 * @param {Failure[]} failures
 */
function adviceFor(failures) {
  const counts = ADVICE.map(([, applies]) => failures.filter(applies).length);
  const most = counts.indexOf(Math.max(...counts));
  return failures.length > 0 && counts[most] > 0 ? ADVICE[most][0] : MAKE_AGAIN;
}

// So small a share of the operations is not worth a load without the others.
const FEW = 0.05;
const MAKE_AGAIN = 'Make the mix again: lab mix make NAME.';
/** @type {[string, (failure: Failure) => boolean][]} */
const ADVICE = [
  [
    "Log in again: renew the session or token of the target's file ([auth] or [headers]).",
    ({ status, login }) =>
      !!login || [401, 403].includes(status) || (status >= 300 && status < 400),
  ],
  ["See the target's log.", ({ status }) => status >= 500],
  ['Is the target running? See its log.', ({ status }) => status === 0],
  [MAKE_AGAIN, ({ status }) => status >= 400 && status < 500 && ![401, 403].includes(status)],
];

/** @param {Env} env */
export function describe({ options }) {
  return { operations: options.mix.operations.length };
}
