// @ts-check
// The journey's steps, and leases of nights that no other run books.
import {
  candidatesPick,
  dateOf,
  dayOf,
  leaseTake,
  nightsNeeded,
  slotBooking,
} from '../lib/slots.js';
import { journeyStep } from '../scenarios/journey.js';
import { equals, throwsWith } from './expect.js';

export const cases = [journeyRatio, slotsUnique, slotsEnd, leaseRanges, leaseCandidates];

function journeyRatio() {
  const hotels = 20;
  const steps = Array.from({ length: 2200 }, (_, i) => journeyStep(i, hotels).step);
  const times = (/** @type {number} */ wanted) => steps.filter((step) => step === wanted).length;
  equals('journey: each step as often', [times(0), times(7), times(hotels + 1)], [100, 100, 100]);
  equals('journey: no step beyond', Math.max(...steps), hotels + 1);
  equals('journey: counts journeys', journeyStep(45, hotels), { journey: 2, step: 1 });
}

/**
 * @param {number} firstDay
 * @param {number} nights
 * @returns {import('../lib/slots.js').Lease}
 */
function leaseOf(firstDay, nights) {
  const suites = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((id, i) => ({ id, guests: 1 + (i % 2) }));
  return { suites, customers: ['x', 'y', 'z'], hotels: {}, firstDay, nights };
}

function slotsUnique() {
  const first = dayOf('2030-01-01');
  const seen = new Set();
  for (const lease of [leaseOf(first, 100), leaseOf(first + 100, 50)]) {
    for (let n = 0; n < lease.nights * lease.suites.length; n++) {
      const slot = slotBooking(lease, n);
      seen.add(slot && `${slot.suite} ${slot.check_in}`);
      if (slot && dayOf(slot.check_out) !== dayOf(slot.check_in) + 1) seen.clear();
    }
  }
  equals('slots: all different, one night each', seen.size, 150 * 7);
}

function slotsEnd() {
  const lease = leaseOf(dayOf('2030-12-31'), 2);
  const booking = {
    suite: 'b',
    check_in: '2030-12-31',
    check_out: '2031-01-01',
    customers: ['y', 'z'],
  };
  equals('slots: the booking', slotBooking(lease, 1), booking);
  equals(
    'slots: none past the lease',
    [slotBooking(lease, 13) === null, slotBooking(lease, 14)],
    [false, null],
  );
  equals('slots: nights', [nightsNeeded(700, 7), nightsNeeded(701, 7)], [101, 102]);
  equals('slots: dates and days', dateOf(dayOf('9999-12-31')), '9999-12-31');
}

function leaseRanges() {
  /** @type {number[][]} */
  const taken = [];
  const book = (/** @type {number} */ from, /** @type {number} */ to) => {
    if (to > dayOf('9999-12-31') || taken.some((range) => from < range[1] && range[0] < to))
      return false;
    taken.push([from, to]);
    return true;
  };
  for (let run = 0; run < 30; run++) leaseTake(300 + ((run * 37) % 200), dayOf('2030-01-01'), book);
  equals('lease: thirty runs, each with its own range', taken.length, 30);
  equals('lease: the first starts in 2030', taken[0][0], dayOf('2030-01-01'));
  equals('lease: a year at least', taken[0][1] - taken[0][0], 365);
  throwsWith('lease: bounded', () => leaseTake(400, 0, () => false), ['400 nights', 'Reset']);
  throwsWith('lease: calendar', () => leaseTake(9, dayOf('9999-12-30'), book), ['9999-12-31']);
}

function leaseCandidates() {
  const bookings = [{ check_out: '2031-05-01', customers: ['x', 'y'] }];
  const suite = (/** @type {string} */ id) => ({ id, capacity: id === '3' ? 1 : 4, bookings });
  const hotels = [
    { id: 'h2', suites: [suite('3'), suite('4')] },
    { id: 'h1', suites: [suite('2'), suite('1')] },
  ];
  const picked = candidatesPick(hotels);
  equals('candidates: sentinel by id', picked.sentinel, '1');
  equals(
    'candidates: sentinel never booked',
    picked.suites.map(({ id }) => id),
    ['2', '3', '4'],
  );
  equals(
    'candidates: guests fit',
    picked.suites.map(({ guests }) => guests),
    [2, 1, 2],
  );
  equals('candidates: whose suites', picked.hotels, { 2: 'h1', 3: 'h2', 4: 'h2' });
  equals('candidates: after every booking', dateOf(picked.freeFrom), '2031-05-01');
  throwsWith('candidates: none', () => candidatesPick([{ id: 'h', suites: [] }]), ['Load']);
}
