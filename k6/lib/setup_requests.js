// @ts-check
// Requests of setup(): named setup_…, to separate them from the load's. An unexpected response stops
// the run.

/**
 * @param {string} name
 * @param {import('./env.js').Env} env
 */
export function params(name, env) {
  return {
    tags: { name },
    timeout: env.clientTimeoutMs,
    responseType: /** @type {const} */ ('text'),
  };
}

/**
 * @param {import('k6/http').Response} response
 * @param {number} expected
 * @param {string} advice
 */
export function requireStatus(response, expected, advice) {
  if (response.status === expected) return;
  const detail = response.error || String(response.body || '').trim();
  throw new Error(
    `${response.request.method} ${response.request.url} returned ${response.status}, ` +
      `expected ${expected} (${detail.slice(0, 300)}). ${advice}`,
  );
}

/**
 * @param {import('k6/http').Response} response
 * @returns {any}
 */
export function readBody(response) {
  try {
    return response.json();
  } catch (_) {
    throw new Error(
      `${response.request.url} did not return JSON. Is another program listening on this port?`,
    );
  }
}
