// @ts-check
// The objects that a load changes or deletes: how many it needs, and which iteration has which.

import { SharedArray } from 'k6/data';
import { PAUSE_SECONDS, plannedIterations } from './arrivals.js';
import { operationAt } from './mix.js';

/** @typedef {import('./mix.js').CreatedBy} CreatedBy */
/** @typedef {import('./mix.js').Mix} Mix */
/** @typedef {import('./profiles.js').Profile} Profile */

/**
 * An operation, as far as its objects are concerned.
 * @typedef {{ name: string, method: string, createdBy: CreatedBy | null }} Part
 */

/**
 * @typedef {object} Plan
 * @property {readonly CreatedBy[]} objects what creates each of them
 * @property {readonly [number, number][]} turns iterations with the index of their object, in order
 * @property {readonly number[]} trials index of the object for the first request of each operation,
 *   before the load; -1: it needs none
 */

// More would take setup() too long.
const MAX_OBJECTS = 5000;
// Objects that PATCH, PUT and POST share, for each operation that creates them.
const MAX_SHARED = 200;
// No operation is more than 4.5 requests off its share (mix.js).
const SPARE = 5;
// k6 may start a few iterations more than planned.
const SPARE_ITERATIONS = 10;

/**
 * A DELETE consumes its object, so each has its own. The others share as many as may be in flight,
 * in turn: no two requests in flight have one object, unless one takes longer than a whole round.
 * @param {readonly Part[]} operations
 * @param {readonly number[]} shares
 * @param {number} planned number of iterations
 * @param {number} maxVUs
 * @returns {Plan}
 */
export function planObjects(operations, shares, planned, maxVUs) {
  requireFew(operations, shares, planned);
  const iterations = Array.from({ length: planned + SPARE_ITERATIONS }, (_, i) => i);
  const turns = iterations
    .map((i) => ({ i, index: operationAt(shares, i) }))
    .filter(({ index }) => operations[index].createdBy);
  const trials = operations.map((_, index) => index).filter((i) => operations[i].createdBy);
  const uses = [...turns.map(({ index }) => index), ...trials];
  const { objects, take } = buildPools(operations, shares, uses, maxVUs);
  /** @type {[number, number][]} */
  const owners = turns.map(({ i, index }) => [i, take(index)]);
  return {
    turns: owners,
    trials: operations.map((_, index) => (trials.includes(index) ? take(index) : -1)),
    objects: rejectMany(objects),
  };
}

/**
 * Return the objects, and a function that takes the next one for an operation.
 * @param {readonly Part[]} operations
 * @param {readonly number[]} shares
 * @param {number[]} uses indexes of operations
 * @param {number} maxVUs
 */
function buildPools(operations, shares, uses, maxVUs) {
  /** @type {CreatedBy[]} */
  const objects = [];
  /** @type {Map<string, { uses: number, share: number, first: number, size: number, taken: number }>} */
  const pools = new Map();
  const poolOf = (/** @type {number} */ index) => {
    const { operation, id_from } = createdByOf(operations[index]);
    const key = `${operation} ${id_from}`;
    const known = pools.get(key) || { uses: 0, share: 0, first: 0, size: 0, taken: 0 };
    pools.set(key, known);
    return known;
  };
  const isShared = (/** @type {number} */ index) => operations[index].method !== 'DELETE';
  uses.filter(isShared).forEach((index) => (poolOf(index).uses += 1));
  operations.forEach(({ createdBy }, index) => {
    if (createdBy && isShared(index)) poolOf(index).share += shareOf(shares, index);
  });

  /** @param {number} index */
  function take(index) {
    const createdBy = createdByOf(operations[index]);
    if (!isShared(index)) return objects.push(createdBy) - 1;
    const pool = poolOf(index);
    if (pool.size === 0) {
      pool.first = objects.length;
      pool.size = Math.min(pool.uses, Math.ceil(maxVUs * pool.share) + SPARE, MAX_SHARED);
      for (let n = 0; n < pool.size; n++) objects.push(createdBy);
    }
    return pool.first + (pool.taken++ % pool.size);
  }
  return { objects, take };
}

/** @param {Part} operation that has an object */
const createdByOf = ({ createdBy }) => /** @type {CreatedBy} */ (createdBy);

/**
 * @param {readonly number[]} shares
 * @param {number} index
 */
const shareOf = (shares, index) => shares[index] - (shares[index - 1] || 0);

/**
 * Reject a load with too many DELETEs before its iterations are counted, which takes long.
 * @param {readonly Part[]} operations
 * @param {readonly number[]} shares
 * @param {number} planned
 */
function requireFew(operations, shares, planned) {
  const deletes = operations.map(({ method, createdBy }, index) =>
    createdBy && method === 'DELETE' ? shareOf(shares, index) : 0,
  );
  rejectMany({ length: Math.ceil(deletes.reduce((sum, share) => sum + share, 0) * planned) });
}

/**
 * @template {{ length: number }} T
 * @param {T} objects
 * @returns {T}
 */
function rejectMany(objects) {
  if (objects.length <= MAX_OBJECTS) return objects;
  throw new Error(
    `This load needs ${objects.length} objects that it changes or deletes; at most ` +
      `${MAX_OBJECTS} are created before a load. Lower the rate (RATE, --rate), shorten it ` +
      '(DURATION, --duration), or select operations (ONLY, --only).',
  );
}

/**
 * Return the plan of a load, with one copy for all VUs; null if no operation needs an object.
 * @param {Mix} mix
 * @param {Profile} profile
 * @returns {Plan | null}
 */
export function loadPlan({ operations, shares }, profile) {
  const parts = [...operations];
  if (!parts.some(({ createdBy }) => createdBy)) return null;
  if (profile.speed) throw new Error('PROFILE=times: the MIX has operations that need objects.');
  /** @type {Plan | null} */
  let known = null;
  const plan = () => {
    const planned = plannedIterations(profile, PAUSE_SECONDS);
    return known || (known = planObjects(parts, shares, planned, profile.maxVUs));
  };
  return {
    objects: new SharedArray('objects', () => [...plan().objects]),
    turns: new SharedArray('turns', () => [...plan().turns]),
    trials: new SharedArray('trials', () => [...plan().trials]),
  };
}

/**
 * @param {readonly [number, number][]} turns
 * @param {number} iteration
 * @returns {number} index of its object; -1 if the iteration was not planned
 */
export function objectAt(turns, iteration) {
  let low = 0;
  let high = turns.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (turns[middle][0] < iteration) low = middle + 1;
    else high = middle;
  }
  const turn = low < turns.length ? turns[low] : null;
  return turn && turn[0] === iteration ? turn[1] : -1;
}

/**
 * Return the id of a created object.
 * @param {{ headers: Record<string, string>, body: any }} response
 * @param {string} idFrom field of the answer (`data.id`: within another), or `Location`
 * @returns {string} empty if there is none
 */
export function readId({ headers, body }, idFrom) {
  const value = idFrom === 'Location' ? headers.Location : readField(body, idFrom.split('.'));
  if (typeof value !== 'string' && typeof value !== 'number') return '';
  const text = String(value);
  if (!text.includes('/')) return text;
  // Of an address, the last part of its path.
  const [path] = text.split(/[?#]/);
  return decodeURIComponent(path.replace(/\/+$/, '').split('/').pop() || '');
}

/**
 * @param {any} body
 * @param {string[]} keys
 */
function readField(body, keys) {
  try {
    return keys.reduce((value, key) => value[key], JSON.parse(body));
  } catch (_) {
    return undefined;
  }
}
