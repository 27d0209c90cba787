// @ts-check
// Where setup() reads its pages, so that the load finds the caches as they were.

/**
 * @typedef {object} Source
 * @property {string} origin scheme, host and port
 * @property {string} query
 * @property {Record<string, string>} headers
 */

/**
 * The backend itself, whose caches let the lab's token pass; where it can't be reached, the target
 * with a query of its own. Caches that go by the whole address (basic, cache_page) then keep setup's
 * pages apart from the load's; protected, versioned and lru do not, and are warmed by setup.
 * @param {Pick<import('./env.js').Env, 'baseUrl' | 'settingsUrl' | 'labToken'>} env
 * @param {string} testid
 * @returns {Source}
 */
export function sourceChoose({ baseUrl, settingsUrl, labToken }, testid) {
  if (!settingsUrl) {
    return { origin: baseUrl, query: `?setup=${encodeURIComponent(testid)}`, headers: {} };
  }
  const [origin] = settingsUrl.match(/^https?:\/\/[^/]+/) || [''];
  return { origin, query: '', headers: { 'X-Lab-Token': labToken } };
}
