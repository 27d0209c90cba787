// @ts-check
// One route of the workbench, requested as one user would: with RETRIES, a failed request is
// retried.

import { check, sleep } from 'k6';
import http from 'k6/http';
import { recordInTime, recordRetry } from './metrics.js';

// The workbench's routes, as named in ROUTE.

/**
 * `query` makes setup's request cheap.
 * @typedef {{ method: 'GET' | 'POST', expected: number, query?: string }} Route
 */

/** @type {Record<string, Route>} */
export const ROUTES = {
  cpu: { method: 'GET', expected: 200, query: '?n=1' },
  io_read: { method: 'GET', expected: 200 },
  io_create: { method: 'POST', expected: 201 },
  sleep: { method: 'GET', expected: 200, query: '?seconds=0' },
  read_sleep: { method: 'GET', expected: 200, query: '?seconds=0' },
  row_lock: { method: 'GET', expected: 200 },
  random_row_lock: { method: 'GET', expected: 200 },
  pg_sleep: { method: 'GET', expected: 200 },
  hello: { method: 'GET', expected: 200 },
  layer_hello: { method: 'GET', expected: 200 },
};

/** @param {string} route */
export function workbenchName(route) {
  return `workbench_${route}`;
}

/**
 * @param {string} baseUrl
 * @param {string} route
 */
export function workbenchUrl(baseUrl, route) {
  return `${baseUrl}/workbench/${route.replace(/_/g, '-')}/`;
}

/** @typedef {ReturnType<typeof buildWorkbench>} Workbench */

// Before the second attempt; doubled before each further one.
const FIRST_PAUSE_SECONDS = 0.1;

/** @param {import('./env.js').Env} env */
export function buildWorkbench({ baseUrl, route, retries, boundMs, clientTimeoutMs }) {
  const name = workbenchName(route);
  const url = workbenchUrl(baseUrl, route);
  const { method, expected } = ROUTES[route] || {};
  const params = {
    tags: { name },
    timeout: clientTimeoutMs,
    redirects: 0,
    responseCallback: http.expectedStatuses(expected || 200),
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
    recordInTime(response, name, boundMs, waitedMs);
    check(response, checks);
    return response.status;
  }

  return {
    /** @param {string} title unique title of a post */
    use(title) {
      const startedAt = Date.now();
      for (let attempt = 1; isRetryable(send(title, Date.now() - startedAt)); attempt++) {
        if (attempt > retries) return;
        recordRetry(name);
        sleep(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1));
      }
    },
  };
}

/** @param {number} status a client error is not retried */
function isRetryable(status) {
  return status === 0 || status >= 500;
}
