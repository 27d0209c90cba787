// @ts-check
// One route of the server experiments.
import exec from 'k6/execution';
import { pause } from '../lib/pause.js';

/** @typedef {import('../lib/workbench.js').Workbench} Workbench */
/** @typedef {import('../lib/prepare.js').Prepared} Prepared */

/**
 * @param {Workbench} workbench
 * @param {Prepared} data
 */
export function request(workbench, data) {
  workbench.use(`${exec.scenario.iterationInTest} of ${data.testid}`);
}

/**
 * @param {Workbench} workbench
 * @param {Prepared} data
 */
export function iteration(workbench, data) {
  request(workbench, data);
  pause();
}
