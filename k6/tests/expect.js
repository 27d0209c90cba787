// @ts-check
import { check } from 'k6';

/**
 * @param {string} name
 * @param {unknown} actual
 * @param {unknown} expected
 */
export function equals(name, actual, expected) {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  report(name, got === wanted, `got ${got}, expected ${wanted}`);
}

/**
 * @param {string} name
 * @param {() => unknown} act
 * @param {string[]} texts all of which the message must contain
 */
export function throwsWith(name, act, texts) {
  let message = 'nothing was thrown';
  try {
    act();
  } catch (error) {
    message = String(error);
  }
  const missing = texts.filter((text) => !message.includes(text));
  report(name, missing.length === 0, `"${message}" lacks ${missing.join(', ')}`);
}

/**
 * k6 only logs an exception and exits 0, so a test that throws must count as a failed check.
 * @param {() => void} test
 */
export function completes(test) {
  try {
    test();
    report(`${test.name} completes`, true, '');
  } catch (error) {
    report(`${test.name} completes`, false, String(error));
  }
}

/**
 * The difference becomes part of the check's name, because failures are read in k6's summary.
 * @param {string} name
 * @param {boolean} passed
 * @param {string} difference
 */
function report(name, passed, difference) {
  check(null, { [passed ? name : `${name}: ${difference}`]: () => passed });
}
