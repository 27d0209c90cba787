// @ts-check
// One route of the server experiments, requested as one user would: with RETRIES, a failed request
// is retried.

import { check, sleep } from 'k6';
import exec from 'k6/execution';
import http from 'k6/http';
import { readChoice, readInteger } from '../lib/env.js';
import { isSuccess, recordInTime, recordRetry } from '../lib/metrics.js';
import { ROUTES, workbenchUrl } from './workbench_routes.js';

export const variables = ['ROUTE', 'RETRIES'];

/** @param {import('../lib/env.js').Variables} values */
export function readOptions(values) {
  return {
    route: readChoice(values, 'ROUTE', Object.keys(ROUTES), ''),
    // Of a failed request, at most.
    retries: readInteger(values, 'RETRIES', 0, 0, 10),
  };
}

export const loadSetup = () => require('./setup/workbench.js');

/** @type {import('../lib/scenario').Build<import('../lib/prepare.js').Prepared>} */
export function build(env) {
  const name = `workbench_${env.options.route}`;
  const use = buildUser(env, name);
  return {
    names: [name],
    request: ({ testid }) => use(`${exec.scenario.iterationInTest} of ${testid}`),
  };
}

// Before the second attempt; doubled before each further one.
const FIRST_PAUSE_SECONDS = 0.1;

/**
 * Return a function that requests the route like one user, and takes the unique title of a post.
 * @param {import('../lib/env.js').Env} env
 * @param {string} name
 * @returns {(title: string) => void}
 */
function buildUser({ baseUrl, options, boundMs, clientTimeoutMs }, name) {
  const { route, retries } = options;
  const url = workbenchUrl(baseUrl, route);
  const { method, expected } = ROUTES[route];
  const params = {
    tags: { name },
    timeout: clientTimeoutMs,
    redirects: 0,
    responseCallback: http.expectedStatuses(expected),
  };
  const checks = {
    [`${name}: status is ${expected}`]: (/** @type {{ status: number }} */ { status }) =>
      status === expected,
  };

  /**
   * @param {string} title
   * @param {number} waitedMs
   * @returns {number} the status; 0 without a response
   */
  function send(title, waitedMs) {
    const form = method === 'POST' ? { title, content: 'A post of the load.' } : null;
    const response = http.request(method, url, form, params);
    const { status, timings } = response;
    recordInTime(name, isSuccess(status) && waitedMs + timings.duration <= boundMs);
    check(response, checks);
    return status;
  }

  return (title) => {
    const startedAt = Date.now();
    for (let attempt = 1; isRetryable(send(title, Date.now() - startedAt)); attempt++) {
      if (attempt > retries) return;
      recordRetry(name);
      sleep(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1));
    }
  };
}

/** @param {number} status a client error is not retried */
function isRetryable(status) {
  return status === 0 || status >= 500;
}
