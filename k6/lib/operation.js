// @ts-check
// An operation of a mix, as its requests are sent.

import http from 'k6/http';

/** @typedef {ReturnType<typeof buildOperation>} Operation */

// Longer names would be long labels in Prometheus.
const NAME_LENGTH = 120;

/**
 * Return what is the same for all requests of an operation.
 * @param {import('./env.js').Env} env
 * @param {import('./mix.js').Part} part
 */
export function buildOperation(env, part) {
  const { name: fullName, method, expect, headers, createdBy, page, first, count } = part;
  const name = fullName.slice(0, NAME_LENGTH);
  const family = Math.floor(expect / 100);
  const isExpected = (/** @type {number} */ status) => Math.floor(status / 100) === family;
  const params = {
    tags: { name },
    timeout: env.clientTimeoutMs,
    headers: { ...headers, ...env.options.headers },
    // One arrival is one request, and no other host gets the headers.
    redirects: 0,
    responseCallback: http.expectedStatuses({ min: family * 100, max: family * 100 + 99 }),
  };
  const checks = {
    [`${name}: status is ${family}xx`]: (/** @type {{ status: number }} */ { status }) =>
      isExpected(status),
  };
  return { name, method, family, createdBy, page, first, count, isExpected, params, checks };
}

/**
 * Return the path that a response redirects to, '' if it does not; a query could have a secret.
 * @param {import('k6/http').Response} response
 */
export function redirectPath({ status, headers }) {
  if (!headers.Location || status < 300 || status > 399) return '';
  const path = headers.Location.replace(/^https?:\/\/[^/]*/, '').replace(/[?#].*/s, '');
  return path.slice(0, NAME_LENGTH) || '/';
}
