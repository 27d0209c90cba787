// @ts-check
// Which message each socket was owed, and which it got: by the bookings' ids, so the count is exact
// whoever else books meanwhile, and whether a message or the booking's answer comes first.

/** @typedef {{ expected: number, lost: number, doubled: number, other: number }} Counts */
/** @typedef {ReturnType<typeof tallyBuild>} Tally */

/** @param {string[]} watched the hotel of each socket */
export function tallyBuild(watched) {
  /** @type {Map<string, string>} the hotel of each booking, by its id */
  const bookings = new Map();
  /** @type {Set<string>[]} the bookings that each socket was told of */
  const told = watched.map(() => new Set());
  let doubled = 0;

  return {
    /**
     * @param {string} id
     * @param {string} hotel
     */
    booked(id, hotel) {
      bookings.set(id, hotel);
    },

    /**
     * @param {number} socket
     * @param {string} id
     */
    received(socket, id) {
      if (told[socket].has(id)) doubled += 1;
      else told[socket].add(id);
    },

    /** @returns {Counts} */
    counts() {
      const expected = owed(watched, bookings);
      const all = told.reduce((sum, ids) => sum + ids.size, 0);
      const due = told.reduce((sum, ids, socket) => sum + dueOf(ids, watched[socket]), 0);
      return { expected, lost: expected - due, doubled, other: all - due };
    },
  };

  /**
   * @param {Set<string>} ids
   * @param {string} hotel
   */
  function dueOf(ids, hotel) {
    let due = 0;
    for (const id of ids) if (bookings.get(id) === hotel) due += 1;
    return due;
  }
}

/**
 * @param {string[]} watched
 * @param {Map<string, string>} bookings
 */
function owed(watched, bookings) {
  /** @type {Map<string, number>} */
  const watchers = new Map();
  for (const hotel of watched) watchers.set(hotel, (watchers.get(hotel) || 0) + 1);
  let messages = 0;
  for (const hotel of bookings.values()) messages += watchers.get(hotel) || 0;
  return messages;
}
