// @ts-check
import { check } from 'k6';

/**
 * @param {string} name
 * @param {unknown} actual
 * @param {unknown} expected
 */
export function expectEqual(name, actual, expected) {
  const [actualText, expectedText] = [JSON.stringify(actual), JSON.stringify(expected)];
  report(name, actualText === expectedText, `got ${actualText}, expected ${expectedText}`);
}

/**
 * @param {string} name
 * @param {() => unknown} action
 * @param {string[]} texts all of which the message must contain
 */
export function expectError(name, action, texts) {
  let message = 'nothing was thrown';
  try {
    action();
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
export function runTest(test) {
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
