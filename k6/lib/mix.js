// @ts-check
// A mix of requests (load_lab/targets/mix.py): its operations, and which of them an iteration requests.

import { SharedArray } from 'k6/data';

const MIX_VERSION = 1;
const ADVICE = 'Make it again: lab mix make NAME.';

/**
 * One concrete request: path and query string, and the body as text.
 * @typedef {{ path: string, body?: string | null }} Request
 */

/**
 * What creates an operation's object: the name of a POST, and the field of its answer with the id.
 * @typedef {{ operation: string, id_from: string }} CreatedBy
 */

/**
 * Requests of one name. `weight` is its share, in any unit.
 * @typedef {object} Operation
 * @property {string} name
 * @property {string} method
 * @property {number} weight
 * @property {number} expect status of its responses
 * @property {Record<string, string>} [headers]
 * @property {CreatedBy} [created_by] set if each request has an object that a load creates first
 * @property {import('./pages.js').Page} [page] set if its answers are HTML
 * @property {Request[]} requests
 */

/**
 * A request of a log: seconds after the first one, and its place in the file.
 * @typedef {{ at: number, operation: number, request: number }} Arrival
 */

/**
 * `creators` are the operations that create objects for the others.
 * @typedef {{ operations: Operation[], arrivals?: Arrival[], creators?: Operation[] }} Document
 */

// The file.

/**
 * @param {string} path absolute
 * @param {(path: string) => string} open
 * @returns {Document}
 */
export function readDocument(path, open) {
  const document = parse(path, readText(path, open));
  const version = document ? document.mix_version : undefined;
  if (version !== MIX_VERSION) {
    throw new Error(
      `MIX=${path} has mix version ${version}; these scripts read ${MIX_VERSION}. ${ADVICE}`,
    );
  }
  if (!Array.isArray(document.operations) || document.operations.length === 0) {
    throw new Error(`MIX=${path} has no operations. ${ADVICE}`);
  }
  return document;
}

/** @param {string} path */
function requireAbsolute(path) {
  if (!path) {
    throw new Error('MIX is not set. Set it to the path of a mix: lab mix make NAME makes one.');
  }
  if (!path.startsWith('/')) {
    throw new Error(`MIX=${path} is not an absolute path. Set it like MIX=$PWD/mix.json.`);
  }
}

/**
 * @param {string} path
 * @param {(path: string) => string} open
 */
function readText(path, open) {
  try {
    return open(path);
  } catch (error) {
    throw new Error(`MIX=${path} can't be read (${error}). Make it: lab mix make NAME.`);
  }
}

/**
 * @param {string} path
 * @param {string} text
 */
function parse(path, text) {
  try {
    return JSON.parse(text);
  } catch (_) {
    throw new Error(`MIX=${path} is not JSON. ${ADVICE}`);
  }
}

/**
 * Return the document with the operations whose names match ONLY, in which * stands for any text.
 * @param {Document} document
 * @param {string} only empty: all
 * @returns {Document}
 */
export function selectOperations({ operations, arrivals = [] }, only) {
  if (!only) return { operations, arrivals, creators: creatorsOf(operations, operations) };
  const parts = only.split('*').map((text) => text.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  const pattern = new RegExp(`^${parts.join('.*')}$`, 's');
  const selected = operations.filter(({ name }) => pattern.test(name));
  if (selected.length === 0) {
    const names = operations.map(({ name }) => name);
    throw new Error(
      `ONLY=${only} matches none of the ${names.length} operations. ` +
        `The nearest: ${nearest(only, names).join(', ')}.`,
    );
  }
  const indexes = operations.map((operation) => selected.indexOf(operation));
  const remaining = arrivals
    .map((arrival) => ({ ...arrival, operation: indexes[arrival.operation] }))
    .filter(({ operation }) => operation >= 0);
  const creators = creatorsOf(selected, operations);
  return { operations: selected, arrivals: remaining, creators };
}

/**
 * Return the names that share most words with a text, at most three.
 * @param {string} text
 * @param {string[]} names
 */
function nearest(text, names) {
  const wordsOf = (/** @type {string} */ name) => name.toLowerCase().match(/\w+/g) || [];
  const words = new Set(wordsOf(text));
  const shared = (/** @type {string} */ name) => wordsOf(name).filter((w) => words.has(w)).length;
  return [...names].sort((a, b) => shared(b) - shared(a)).slice(0, 3);
}

/**
 * @param {Operation[]} selected
 * @param {Operation[]} all
 */
function creatorsOf(selected, all) {
  const names = selected.map(({ created_by }) => created_by && created_by.operation);
  return all.filter(({ name }) => names.includes(name));
}

// The mix in memory: one copy for all VUs. k6 parses an element at each access, so they are small.

/**
 * @typedef {object} Part an operation without its requests
 * @property {string} name
 * @property {string} method
 * @property {number} expect
 * @property {Record<string, string>} headers
 * @property {CreatedBy | null} createdBy
 * @property {import('./pages.js').Page | null} page
 * @property {number} first index of its first request in the mix
 * @property {number} count number of its requests
 */

/** @typedef {{ seconds: number, peakRate: number }} Recording of all arrivals; rate per second */

/**
 * @typedef {object} Mix
 * @property {readonly Part[]} operations
 * @property {readonly Part[]} creators
 * @property {readonly Request[]} requests of all operations and creators
 * @property {readonly number[]} shares where each operation's part of 0..1 ends
 * @property {readonly Arrival[]} arrivals in the order of their times
 * @property {Recording | null} recording null without arrivals
 */

/**
 * @param {Document} document
 * @returns {Mix}
 */
export function buildMix({ operations, arrivals = [], creators = [] }) {
  let first = 0;
  const parts = [...operations, ...creators].map((operation) => {
    const { name, method, expect, headers = {}, created_by, page = null, requests } = operation;
    const count = requests.length;
    const createdBy = created_by || null;
    const part = { name, method, expect, headers, createdBy, page, first, count };
    first += count;
    return part;
  });
  const ordered = [...arrivals].sort((a, b) => a.at - b.at);
  return {
    operations: parts.slice(0, operations.length),
    creators: parts.slice(operations.length),
    requests: [...operations, ...creators].flatMap(({ requests }) => requests),
    shares: cumulatedShares(operations.map(({ weight }) => weight)),
    arrivals: ordered,
    recording: ordered.length > 0 ? describeArrivals(ordered) : null,
  };
}

/** @param {number[]} weights */
export function cumulatedShares(weights) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let share = 0;
  return weights.map((weight) => (share += weight / total));
}

/**
 * @param {Arrival[]} arrivals
 * @returns {Recording}
 */
function describeArrivals(arrivals) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const { at } of arrivals) {
    const second = Math.floor(at);
    counts.set(second, (counts.get(second) || 0) + 1);
  }
  const peakRate = [...counts.values()].reduce((peak, count) => Math.max(peak, count), 0);
  return { seconds: arrivals[arrivals.length - 1].at, peakRate };
}

/**
 * Read a mix. Only VU 0 reads the file; the others share its copy.
 * @param {string} path
 * @param {string} only
 * @returns {Mix}
 */
export function loadMix(path, only) {
  requireAbsolute(path);
  const mix = __VU === 0 ? buildMix(selectOperations(readDocument(path, open), only)) : null;
  const share = (/** @type {string} */ part, /** @type {(mix: Mix) => readonly any[]} */ get) =>
    /** @type {readonly any[]} */ (
      new SharedArray(`mix: ${part}`, () => [...get(/** @type {Mix} */ (mix))])
    );
  const [{ shares, recording }] = share('whole', ({ shares, recording }) => [
    { shares, recording },
  ]);
  return {
    operations: share('operations', ({ operations }) => operations),
    creators: share('creators', ({ creators }) => creators),
    requests: share('requests', ({ requests }) => requests),
    arrivals: share('arrivals', ({ arrivals }) => arrivals),
    shares,
    recording,
  };
}

// What an iteration requests. It depends on the iteration's number alone, so several load generators
// together send the same requests as one. The multiples of the golden ratio, without their whole
// parts, are the most evenly spread: in a million requests, no operation of the tested mixes was more
// than 4.1 requests off its share. With the second number, its addresses are spread evenly too. (The
// R2 sequence's pair, 0.75488 and 0.56984, was 16 requests off.)
const BY_SHARE = 0.6180339887498949;
const BY_ADDRESS = 0.7548776662466927;

/**
 * @param {readonly number[]} shares
 * @param {number} iteration
 * @returns {number} index of the operation
 */
export function operationAt(shares, iteration) {
  const position = (iteration * BY_SHARE) % 1;
  let low = 0;
  let high = shares.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (shares[middle] > position) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * @param {number} count
 * @param {number} iteration
 * @returns {number} index of one of an operation's requests
 */
export function requestAt(count, iteration) {
  return Math.floor(((iteration * BY_ADDRESS) % 1) * count);
}

// What a request is sent with. A mix has placeholders (load_lab/targets/mix.py) where requests must differ.
const UNIQUE = '${lab.n}';
const OBJECT = '${lab.id}';

/**
 * @param {Request} request
 * @param {string} unique a text that no other request has
 * @param {string} [id] of the object that the request is for
 * @returns {{ path: string, body: string | null }}
 */
export function fillRequest({ path, body }, unique, id = '') {
  const fill = (/** @type {string} */ text, /** @type {string} */ value) =>
    text.split(UNIQUE).join(unique).split(OBJECT).join(value);
  return { path: fill(path, encodeURIComponent(id)), body: body ? fill(body, id) : null };
}

const RADIX = 36;
const RUN_DIGITS = 5;

/**
 * Return a text of at most 12 letters and digits that no other request has, in any run since a year.
 * @param {number} startMs start of the run, Unix time in ms
 * @param {'i' | 's'} kind an iteration's request, or one of setup()
 * @param {number} index
 */
export function uniqueText(startMs, kind, index) {
  const run = Math.floor(startMs / 1000) % RADIX ** RUN_DIGITS;
  return `${run.toString(RADIX).padStart(RUN_DIGITS, '0')}${kind}${index.toString(RADIX)}`;
}
