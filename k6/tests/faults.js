// @ts-check
// Clients that retry, and the age of pages.
import { envRead } from '../lib/env.js';
import { PROFILES, profileFor } from '../lib/profiles.js';
import { memoryBuild, pauseMs, worthAgain } from '../scenarios/faults.js';
import { equals, throwsWith } from './expect.js';

export const cases = [faultsLoad, triesAgain, pausesGrow, pagesAge];

function faultsLoad() {
  const asked = { SCENARIO: 'faults', PROFILE: 'hold', RATE: '10' };
  const profile = profileFor(envRead(asked, PROFILES), asked);
  equals('faults: one VU', [profile.maxVUs, profile.executor.executor], [1, 'per-vu-iterations']);
  throwsWith('faults: at a rate', () => envRead({ SCENARIO: 'faults' }, PROFILES), [
    'PROFILE=hold',
  ]);
  const more = { ...asked, MAX_VUS: '2' };
  throwsWith('faults: no more', () => profileFor(envRead(more, PROFILES), more), [
    'faults has one',
  ]);
}

function triesAgain() {
  const again = [0, 429, 500, 502, 503, 504].map((status) => worthAgain(status, null));
  equals(
    'patience: tries again',
    again,
    again.map(() => true),
  );
  equals('patience: while the first runs', worthAgain(409, 'in_progress'), true);
  const final = [201, 400, 404, 409, 422].map((status) => worthAgain(status, 'slot_taken'));
  equals(
    'patience: an answer is one',
    final,
    final.map(() => false),
  );
}

function pausesGrow() {
  const shortest = [1, 2, 3, 4, 5, 6, 7].map((tries) => pauseMs(tries, null, 0));
  equals('patience: twice as long', shortest, [50, 100, 200, 400, 800, 1000, 1000]);
  equals('patience: by chance', pauseMs(3, null, 1), 400);
  equals('patience: as asked for', [pauseMs(1, 3, 0), pauseMs(1, 3, 1)], [3000, 6000]);
}

function pagesAge() {
  const memory = memoryBuild();
  memory.booked('h', 'a1', 1000);
  memory.booked('h', 'b2', 2000);
  equals('memory: all there', memory.staleMs('h', 'v3', 'a1 b2', 5000), 0);
  equals('memory: since the first missing', memory.staleMs('h', 'v2', 'b2', 5000), 4000);
  equals('memory: asked before the answer', memory.staleMs('h', 'v1', 'a1', 1500), 0);
  equals('memory: and after it', memory.staleMs('h', 'v1', 'a1', 2500), 500);
  equals('memory: of its hotel', memory.staleMs('i', 'v1', '', 5000), 0);
}
