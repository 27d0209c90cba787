// @ts-check
// The requests of a mix: in its shares, or at the times of a log (PROFILE=times).

import { check, sleep } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { Counter, Trend } from 'k6/metrics';
import { recordPulse, recordResponse } from '../lib/metrics.js';
import { fillRequest, loadMix, operationAt, requestAt, uniqueText } from '../lib/mix.js';
import { loadPlan, objectAt } from '../lib/objects.js';
import { buildOperation, redirectPath } from '../lib/operation.js';
import { buildSampling, recordPage } from '../lib/pages.js';

/** @typedef {import('../lib/env.js').Env} Env */
/** @typedef {import('../lib/env.js').Variables} Variables */
/** @typedef {import('../lib/mix.js').Mix} Mix */
/** @typedef {import('../lib/operation.js').Operation} Operation */
/** @typedef {import('../lib/prepare.js').Prepared & { objects: string[] }} Prepared */
/** @typedef {import('../lib/profiles.js').Profile} Profile */

export const variables = ['MIX', 'ONLY', 'TARGET_HEADERS', 'TARGET_EXPIRES'];

/** @param {Variables} values */
export function readOptions(values) {
  const headers = readHeaders(values.TARGET_HEADERS);
  const mix = loadMix(values.MIX || '', values.ONLY || '');
  return { mix, headers, expires: Number(values.TARGET_EXPIRES) || Infinity };
}

/**
 * Return the headers of every request. They may be secret, so no message contains a part of them.
 * @param {string} [text]
 * @returns {Record<string, string>}
 */
export function readHeaders(text) {
  try {
    const headers = JSON.parse(text || '{}');
    const isObject = headers !== null && typeof headers === 'object' && !Array.isArray(headers);
    if (isObject && Object.values(headers).every((value) => typeof value === 'string')) {
      return headers;
    }
  } catch (_) {
    // JSON.parse's message contains a part of the text.
  }
  throw new Error(
    'TARGET_HEADERS is not a JSON object of texts (its value is not shown). ' +
      `Set it like TARGET_HEADERS='{"Authorization": "Token …"}'.`,
  );
}

/** @param {Env} env */
export const recordingOf = ({ options }) => options.mix.recording;

export const loadSetup = () => require('./setup/replay.js');

/** @type {import('../lib/scenario').Build<Prepared>} */
export function build(env, profile) {
  // setup() needs it too, where no SharedArray can be made.
  env.options.plan = loadPlan(env.options.mix, profile);
  const client = buildClient(env);
  // Without names: a submetric for each operation would cost k6 CPU time at every request.
  if (profile.speed) return { names: [], sendAll: () => sendRecorded(env, profile, client) };
  const request = (/** @type {Prepared} */ { objects }) =>
    client.sendNext(exec.scenario.iterationInTest, objects);
  return { names: [], request };
}

// Of all operations together: a rate needs two pushes of a series, and one of hundreds of operations
// has a request every few seconds.
const duration = new Trend('lab_duration', true);
const redirects = new Counter('lab_redirects');
// Of each VU: a series for each path.
const MOST_REDIRECTS = 5;

const WITH_TEXT = { responseType: /** @type {const} */ ('text') };

/** @typedef {ReturnType<typeof buildClient>} Client */

/** @param {Env} env */
function buildClient(env) {
  /** @type {Mix} */
  const mix = env.options.mix;
  /** @type {import('../lib/objects.js').Plan | null} */
  const plan = env.options.plan;
  /** @type {Operation[]} built at the first request of each */
  const operations = [];
  const isSampled = buildSampling();
  /** @type {Set<string>} paths of unexpected redirects */
  const redirectPaths = new Set();

  /** @param {import('k6/http').Response} response */
  function recordRedirect(response) {
    const to = redirectPath(response);
    if (!to) return;
    if (redirectPaths.size < MOST_REDIRECTS) redirectPaths.add(to);
    redirects.add(1, {
      status: `${response.status}`,
      to: redirectPaths.has(to) ? to : 'elsewhere',
    });
  }

  /** @param {number} index */
  function operationOf(index) {
    const known = operations[index];
    return known || (operations[index] = buildOperation(env, mix.operations[index]));
  }

  /**
   * @param {Operation} operation
   * @param {import('../lib/mix.js').Request} request one of its requests
   * @param {{ jar?: import('k6/http').CookieJar }} [options]
   */
  function send({ name, method, isExpected, page, params, checks }, { path, body }, options) {
    const url = env.baseUrl + path;
    const sampled = page !== null && isSampled();
    const all = options || sampled ? { ...params, ...options, ...(sampled && WITH_TEXT) } : params;
    const response = http.request(method, url, body || null, all);
    const isSuccess = isExpected(response.status);
    recordResponse(response, name, env.boundMs, isSuccess);
    duration.add(response.timings.duration);
    check(response, checks);
    if (sampled && isSuccess) recordPage(name, response);
    if (!isSuccess) recordRedirect(response);
  }

  return {
    /**
     * @param {number} iteration
     * @param {string[]} objects ids of the created objects
     */
    sendNext(iteration, objects) {
      const operation = operationOf(operationAt(mix.shares, iteration));
      const request = mix.requests[operation.first + requestAt(operation.count, iteration)];
      const object = operation.createdBy && plan ? objectAt(plan.turns, iteration) : undefined;
      // A closed load of an unexpected speed: there are no more objects.
      if (object === -1) dropped.add(1);
      else
        send(
          operation,
          filled(request, iteration, object === undefined ? object : objects[object]),
        );
    },

    /**
     * @param {import('../lib/mix.js').Arrival} arrival
     * @param {number} index of the arrival
     */
    sendArrival({ operation: number, request }, index) {
      const operation = operationOf(number);
      const recorded = filled(mix.requests[operation.first + request], index);
      // k6 empties a VU's cookies after each iteration, and here all requests are in one.
      send(operation, recorded, { jar: new http.CookieJar() });
    },
  };
}

/**
 * @param {import('../lib/mix.js').Request} request
 * @param {number} index number of the iteration or arrival
 * @param {string} [id]
 */
function filled(request, index, id) {
  if (!request.body && id === undefined) return request;
  return fillRequest(request, uniqueText(exec.scenario.startTime, 'i', index), id);
}

// PROFILE=times: VU v of n sends every n-th arrival, from the v-th on. An arrival whose VU still
// waits for an earlier response is late, and dropped after MAX_LATE_MS, like k6's own executors
// drop an arrival without a free VU.

const MAX_LATE_MS = 1000;
const dropped = new Counter('dropped_iterations');

/**
 * @param {Env} env
 * @param {Profile} profile
 * @param {Client} client
 */
function sendRecorded({ options }, profile, client) {
  const { maxVUs, speed = 1, leadSeconds = 0 } = profile;
  const startTime = exec.scenario.startTime + leadSeconds * 1000;
  const { arrivals } = options.mix;
  for (let i = exec.vu.idInTest - 1; i < arrivals.length; i += maxVUs) {
    const arrival = arrivals[i];
    const dueAt = startTime + (arrival.at * 1000) / speed;
    const earlyMs = dueAt - Date.now();
    if (earlyMs > 0) sleep(earlyMs / 1000);
    recordPulse(profile, startTime);
    if (-earlyMs > MAX_LATE_MS) dropped.add(1);
    else client.sendArrival(arrival, i);
  }
}
