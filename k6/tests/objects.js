// @ts-check
// The objects of a load that writes: their number, whose they are, and their ids.
import { cumulatedShares, fillRequest, operationAt, uniqueText } from '../lib/mix.js';
import { objectAt, planObjects, readId } from '../lib/objects.js';
import { expectEqual, expectError } from './expect.js';

export const cases = [objectPlan, objectLimit, objectIds, filledRequests];

const BY = { operation: 'POST /a/', id_from: 'id' };
const METHODS = ['GET', 'PATCH', 'PUT', 'DELETE'];
const OPERATIONS = METHODS.map((method) => {
  return { name: method, method, createdBy: method === 'GET' ? null : BY };
});
const SHARES = cumulatedShares(METHODS.map(() => 1));

function objectPlan() {
  const plan = planObjects(OPERATIONS, SHARES, 1000, 40);
  const methodAt = (/** @type {number} */ i) => METHODS[operationAt(SHARES, i)];
  const objects = Array.from({ length: 1000 }, (_, i) => objectAt(plan.turns, i));
  const ofMethod = (/** @type {string} */ method) =>
    objects.filter((_, i) => methodAt(i) === method);
  expectEqual('objects: none to read', [...new Set(ofMethod('GET'))], [-1]);
  const deleted = ofMethod('DELETE');
  expectEqual('objects: one for each DELETE', new Set(deleted).size, deleted.length);
  const shared = new Set([...ofMethod('PATCH'), ...ofMethod('PUT')]);
  expectEqual(
    'objects: changed ones are not deleted',
    deleted.some((n) => shared.has(n)),
    false,
  );
  // Half of the 40 requests in flight.
  expectEqual('objects: as many as may be in flight', shared.size, 25);
  const window = objects.slice(100, 140).filter((n) => shared.has(n));
  expectEqual('objects: different in flight', new Set(window).size, window.length);
  expectEqual(
    'objects: one for each trial',
    plan.trials.map((n) => n >= 0),
    [...[false, true, true, true]],
  );
  expectEqual('objects: the trial of DELETE is its own', deleted.includes(plan.trials[3]), false);
  expectEqual('objects: unplanned iteration', objectAt(plan.turns, 5000), -1);
}

function objectLimit() {
  const many = () => planObjects(OPERATIONS, SHARES, 1e6, 10);
  expectError('objects: too many', many, ['250000 objects', 'at most 5000', '--rate', '--only']);
  const without = planObjects(OPERATIONS.slice(0, 2), [0.5, 1], 1e5, 10000);
  expectEqual('objects: changed ones are few', without.objects.length, 200);
}

function objectIds() {
  const idOf = (/** @type {any} */ body, /** @type {string} */ from, headers = {}) =>
    readId({ headers, body: JSON.stringify(body) }, from);
  expectEqual('id: number', idOf({ id: 7 }, 'id'), '7');
  expectEqual('id: in another object', idOf({ article: { slug: 'a-b' } }, 'article.slug'), 'a-b');
  expectEqual('id: address', idOf({ url: 'http://h/a/a%20b/?c=d' }, 'url'), 'a b');
  expectEqual('id: Location', idOf(null, 'Location', { Location: '/a/9' }), '9');
  expectEqual(
    'id: none',
    [idOf({}, 'id'), idOf({}, 'a.b'), idOf({ id: null }, 'id')],
    [...['', '', '']],
  );
  expectEqual('id: no JSON', readId({ headers: {}, body: '<' }, 'id'), '');
}

function filledRequests() {
  const request = { path: '/a/${lab.id}/', body: '{"name": "x-${lab.n}", "id": "${lab.id}"}' };
  expectEqual('filled', fillRequest(request, 'u1', 'b c'), {
    path: '/a/b%20c/',
    body: '{"name": "x-u1", "id": "b c"}',
  });
  expectEqual('filled: no body', fillRequest({ path: '/a/' }, 'u1'), { path: '/a/', body: null });
  const texts = [0, 1, 36].map((i) => uniqueText(0, 'i', i));
  expectEqual('unique: digits', texts, ['00000i0', '00000i1', '00000i10']);
  const late = uniqueText(Date.parse('2040-01-01'), 's', 1e7);
  expectEqual('unique: short', late.length <= 12, true);
}
