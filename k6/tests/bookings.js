// @ts-check
// The journey's steps, and leases of nights that no other run books.
import { journeyStep } from '../hotel/scenarios/journey.js';
import {
  dateOf,
  dayOf,
  nightsFor,
  pickCandidates,
  slotBooking,
  takeLease,
} from '../hotel/slots.js';
import { expectEqual, expectError } from './expect.js';

export const cases = [journeyRatio, slotsUnique, slotsEnd, leaseRanges, leaseCandidates];

function journeyRatio() {
  const hotels = 20;
  const steps = Array.from({ length: 2200 }, (_, i) => journeyStep(i, hotels).step);
  const times = (/** @type {number} */ number) => steps.filter((step) => step === number).length;
  expectEqual(
    'journey: each step as often',
    [times(0), times(7), times(hotels + 1)],
    [100, 100, 100],
  );
  expectEqual('journey: last step', Math.max(...steps), hotels + 1);
  expectEqual('journey: counts journeys', journeyStep(45, hotels), { journey: 2, step: 1 });
}

/**
 * @param {number} firstDay
 * @param {number} nights
 * @returns {import('../hotel/slots.js').Lease}
 */
function leaseOf(firstDay, nights) {
  const suites = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((id, i) => ({ id, guests: 1 + (i % 2) }));
  return { suites, customers: ['x', 'y', 'z'], hotels: {}, firstDay, nights };
}

function slotsUnique() {
  const first = dayOf('2030-01-01');
  const slots = new Set();
  for (const lease of [leaseOf(first, 100), leaseOf(first + 100, 50)]) {
    for (let n = 0; n < lease.nights * lease.suites.length; n++) {
      const slot = slotBooking(lease, n);
      slots.add(slot && `${slot.suite} ${slot.check_in}`);
      if (slot && dayOf(slot.check_out) !== dayOf(slot.check_in) + 1) slots.clear();
    }
  }
  expectEqual('slots: all different, one night each', slots.size, 150 * 7);
}

function slotsEnd() {
  const lease = leaseOf(dayOf('2030-12-31'), 2);
  const booking = {
    suite: 'b',
    check_in: '2030-12-31',
    check_out: '2031-01-01',
    customers: ['y', 'z'],
  };
  expectEqual('slots: the booking', slotBooking(lease, 1), booking);
  expectEqual(
    'slots: end of the lease',
    [slotBooking(lease, 13) === null, slotBooking(lease, 14)],
    [false, null],
  );
  expectEqual('slots: nights', [nightsFor(700, 7), nightsFor(701, 7)], [101, 102]);
  expectEqual('slots: dates and days', dateOf(dayOf('9999-12-31')), '9999-12-31');
}

function leaseRanges() {
  /** @type {number[][]} */
  const ranges = [];
  const book = (/** @type {number} */ from, /** @type {number} */ to) => {
    if (to > dayOf('9999-12-31') || ranges.some((range) => from < range[1] && range[0] < to))
      return false;
    ranges.push([from, to]);
    return true;
  };
  for (let run = 0; run < 30; run++) takeLease(300 + ((run * 37) % 200), dayOf('2030-01-01'), book);
  expectEqual('lease: thirty runs, each with its own range', ranges.length, 30);
  expectEqual('lease: the first starts in 2030', ranges[0][0], dayOf('2030-01-01'));
  expectEqual('lease: a year at least', ranges[0][1] - ranges[0][0], 365);
  expectError('lease: number of attempts', () => takeLease(400, 0, () => false), [
    '400 nights',
    'Reset',
  ]);
  expectError('lease: calendar', () => takeLease(9, dayOf('9999-12-30'), book), ['9999-12-31']);
}

function leaseCandidates() {
  const bookings = [{ check_out: '2031-05-01', customers: ['x', 'y'] }];
  const suite = (/** @type {string} */ id) => ({ id, capacity: id === '3' ? 1 : 4, bookings });
  const hotels = [
    { id: 'h2', suites: [suite('3'), suite('4')] },
    { id: 'h1', suites: [suite('2'), suite('1')] },
  ];
  const candidates = pickCandidates(hotels);
  expectEqual('candidates: sentinel by id', candidates.sentinel, '1');
  expectEqual(
    'candidates: sentinel never booked',
    candidates.suites.map(({ id }) => id),
    ['2', '3', '4'],
  );
  expectEqual(
    'candidates: guests fit',
    candidates.suites.map(({ guests }) => guests),
    [2, 1, 2],
  );
  expectEqual('candidates: hotel of each suite', candidates.hotels, { 2: 'h1', 3: 'h2', 4: 'h2' });
  expectEqual('candidates: after every booking', dateOf(candidates.freeFrom), '2031-05-01');
  expectError('candidates: none', () => pickCandidates([{ id: 'h', suites: [] }]), ['Load']);
}
