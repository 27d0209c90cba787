// @ts-check
/** @param {number} value k6 takes fractions as well: 1.5s */
export function seconds(value) {
  return `${value}s`;
}
