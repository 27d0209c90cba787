// @ts-check
// How long a booking stays invisible.
import { envRead } from '../lib/env.js';
import { PROFILES } from '../lib/profiles.js';
import { unseenMs } from '../scenarios/staleness.js';
import { equals, throwsWith } from './expect.js';

export const cases = [stalenessAsked, stalenessBounded];

/** @param {Record<string, string>} variables */
const env = (variables) => envRead(variables, PROFILES);

function stalenessAsked() {
  const probe = { SCENARIO: 'staleness', STALENESS_BOUND: '3' };
  equals('staleness: bound in ms', env(probe).stalenessBoundMs, 3000);
  throwsWith('staleness: closed', () => env({ ...probe, PROFILE: 'hold' }), ['PROFILE=smoke']);
  throwsWith('staleness: alone', () => env({ STALENESS_BOUND: '3' }), ['SCENARIO=staleness']);
  throwsWith('staleness: range', () => env({ ...probe, STALENESS_BOUND: '101' }), ['1..100']);
}

function stalenessBounded() {
  let asked = 0;
  const third = unseenMs(() => ++asked === 3, Date.now(), 5000);
  equals('staleness: until it is seen', [asked, Number(third) >= 200], [3, true]);
  equals('staleness: seen at once', Number(unseenMs(() => true, Date.now() - 50, 0)) >= 50, true);
  const began = Date.now();
  equals(
    'staleness: not for ever',
    unseenMs(() => false, began, 300),
    null,
  );
  equals('staleness: about the bound', Date.now() - began >= 300, true);
}
