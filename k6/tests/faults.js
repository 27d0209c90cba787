// @ts-check
// Clients that retry, and the age of pages.
import { buildMemory, isRetryable, pauseMs } from '../hotel/scenarios/faults.js';
import { env, profile } from './env.js';
import { expectEqual, expectError } from './expect.js';

export const cases = [faultsLoad, retryableResponses, retryPauses, pageStaleness];

function faultsLoad() {
  const variables = { SCENARIO: 'faults', PROFILE: 'hold', RATE: '10' };
  const { maxVUs, executor } = profile(variables);
  expectEqual('faults: one VU', [maxVUs, executor.executor], [1, 'per-vu-iterations']);
  expectError('faults: requires a rate', () => env({ SCENARIO: 'faults' }), ['PROFILE=hold']);
  const withVus = { ...variables, MAX_VUS: '2' };
  expectError('faults: rejects more VUs', () => profile(withVus), ['faults has one']);
}

function retryableResponses() {
  const retried = [0, 429, 500, 502, 503, 504].map((status) => isRetryable(status, null));
  expectEqual(
    'retry: after these statuses',
    retried,
    retried.map(() => true),
  );
  expectEqual('retry: while the first attempt runs', isRetryable(409, 'in_progress'), true);
  const final = [201, 400, 404, 409, 422].map((status) => isRetryable(status, 'slot_taken'));
  expectEqual(
    'retry: not after a final response',
    final,
    final.map(() => false),
  );
}

function retryPauses() {
  const shortest = [1, 2, 3, 4, 5, 6, 7].map((tries) => pauseMs(tries, null, 0));
  expectEqual('retry: pauses double', shortest, [50, 100, 200, 400, 800, 1000, 1000]);
  expectEqual('retry: random pause', pauseMs(3, null, 1), 400);
  expectEqual('retry: Retry-After', [pauseMs(1, 3, 0), pauseMs(1, 3, 1)], [3000, 6000]);
}

function pageStaleness() {
  const memory = buildMemory();
  memory.addBooking('h', 'a1', 1000);
  memory.addBooking('h', 'b2', 2000);
  expectEqual('memory: complete page', memory.staleMs('h', 'v3', 'a1 b2', 5000), 0);
  expectEqual(
    'memory: since the first missing booking',
    memory.staleMs('h', 'v2', 'b2', 5000),
    4000,
  );
  expectEqual('memory: requested before the response', memory.staleMs('h', 'v1', 'a1', 1500), 0);
  expectEqual('memory: requested after the response', memory.staleMs('h', 'v1', 'a1', 2500), 500);
  expectEqual('memory: per hotel', memory.staleMs('i', 'v1', '', 5000), 0);
}
