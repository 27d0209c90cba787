// @ts-check
// A sample of HTML answers: their size, and whether they have a login form. `lab` compares it with
// what the mix says (load_lab/load/page_change.py): a page that asks for a login can have status 200.

import exec from 'k6/execution';
import { Gauge } from 'k6/metrics';

/**
 * What an operation's pages were like when the mix was made: their lengths in characters, from
 * `least` to `most`, and whether one had a login form.
 * @typedef {{ least: number, most: number, has_login: boolean }} Page
 */

// Of all virtual users together, per second.
const SAMPLES = 10;
// As in load_lab/targets/seen_pages.py.
const LOGIN = /<input\b[^>]*\b(?:type|name)\s*=\s*["']?password/i;

// Prometheus gets the last one of each second, of each operation.
const characters = new Gauge('lab_page_characters');

/** @param {string} text */
export function hasLogin(text) {
  return LOGIN.test(text);
}

/**
 * Return a function that tells whether a VU samples its next answer. k6 gives requests to the VUs in
 * turn, so each of them has the same part of the samples; the first ones are spread.
 */
export function buildSampling() {
  let dueAt = 0;
  return () => {
    const now = Date.now();
    if (now < dueAt) return false;
    const intervalMs = (1000 * exec.instance.vusInitialized) / SAMPLES;
    if (dueAt === 0) {
      dueAt = exec.scenario.startTime + (1000 * (exec.vu.idInInstance - 1)) / SAMPLES;
      if (now < dueAt) return false;
    }
    dueAt = now + intervalMs;
    return true;
  };
}

/**
 * @param {string} name
 * @param {import('k6/http').Response} response with its text
 */
export function recordPage(name, { body }) {
  const text = `${body || ''}`;
  characters.add(text.length, { name, login: hasLogin(text) ? 'yes' : 'no' });
}
