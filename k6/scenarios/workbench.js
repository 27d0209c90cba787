// @ts-check
// One route of the server experiments.
import exec from 'k6/execution';
import { pause } from '../lib/arrivals.js';
import { buildWorkbench } from '../lib/workbench.js';

/** @typedef {import('../lib/prepare.js').Prepared} Prepared */
/** @typedef {import('../lib/scenario.js').Tools} Tools */

/** @type {import('../lib/workbench.js').Workbench | undefined} */
let workbench;

/**
 * @param {Tools} tools
 * @param {Prepared} data
 */
export function request({ env }, data) {
  workbench = workbench || buildWorkbench(env);
  workbench.use(`${exec.scenario.iterationInTest} of ${data.testid}`);
}

/**
 * @param {Tools} tools
 * @param {Prepared} data
 */
export function iteration(tools, data) {
  request(tools, data);
  pause();
}
