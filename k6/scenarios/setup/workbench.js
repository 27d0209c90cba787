// @ts-check
// Setup and summary of the scenario `workbench`.

import http from 'k6/http';
import { params, requireStatus } from '../../lib/setup_requests.js';
import { ROUTES, workbenchUrl } from '../workbench_routes.js';

/** @typedef {import('../../lib/env.js').Env} Env */

/**
 * Check that the route exists. A POST without its fields creates no post; the response is then 400.
 * @param {Env} env
 */
export function prepare(env) {
  const { route } = env.options;
  const { method, query } = ROUTES[route];
  const expected = method === 'POST' ? 400 : 200;
  const response = http.request(method, workbenchUrl(env.baseUrl, route) + (query || ''), null, {
    ...params('setup_route', env),
    responseCallback: http.expectedStatuses(expected),
  });
  requireStatus(response, expected, 'Start the target with LAB_WORKBENCH=on.');
  return {};
}

/** @param {Env} env */
export function describe({ options }) {
  return { route: options.route };
}
