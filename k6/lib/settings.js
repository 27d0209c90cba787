// @ts-check

/**
 * @param {Record<string, string>} expected
 * @param {Record<string, unknown>} active the backend may answer numbers as numbers
 * @returns {string[]} one sentence per difference
 */
export function settingsDiffer(expected, active) {
  return Object.keys(expected)
    .filter((name) => String(active[name]) !== expected[name])
    .map((name) =>
      name in active
        ? `${name} is ${active[name]}, expected ${expected[name]}`
        : `${name} is not among the target's settings`,
    );
}
