// @ts-check
// How long a booking stays invisible.
import { timeUntilVisible } from '../hotel/scenarios/staleness.js';
import { env } from './env.js';
import { expectEqual, expectError } from './expect.js';

export const cases = [stalenessVariables, stalenessLimit];

function stalenessVariables() {
  const probe = { SCENARIO: 'staleness', STALENESS_BOUND: '3' };
  expectEqual('staleness: limit in ms', env(probe).options.stalenessBoundMs, 3000);
  expectError('staleness: closed', () => env({ ...probe, PROFILE: 'hold' }), ['PROFILE=smoke']);
  expectError('staleness: other scenario', () => env({ STALENESS_BOUND: '3' }), [
    'SCENARIO=staleness',
  ]);
  expectError('staleness: range', () => env({ ...probe, STALENESS_BOUND: '101' }), ['1..100']);
}

function stalenessLimit() {
  let requests = 0;
  const delayMs = timeUntilVisible(() => ++requests === 3, Date.now(), 5000);
  expectEqual('staleness: until visible', [requests, Number(delayMs) >= 200], [3, true]);
  expectEqual(
    'staleness: visible at once',
    Number(timeUntilVisible(() => true, Date.now() - 50, 0)) >= 50,
    true,
  );
  const startedAt = Date.now();
  expectEqual(
    'staleness: not visible in time',
    timeUntilVisible(() => false, startedAt, 300),
    null,
  );
  expectEqual('staleness: after the limit', Date.now() - startedAt >= 300, true);
}
