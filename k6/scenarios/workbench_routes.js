// @ts-check
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

/**
 * @param {string} baseUrl
 * @param {string} route
 */
export function workbenchUrl(baseUrl, route) {
  return `${baseUrl}/workbench/${route.replace(/_/g, '-')}/`;
}
