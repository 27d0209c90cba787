// @ts-check
// Which bookings were answered, so that a page without one of them is known to be old.

/** @typedef {ReturnType<typeof memoryBuild>} Memory */
/** @typedef {{ id: string, at: number }} Booked */

export function memoryBuild() {
  /** @type {Record<string, Booked[]>} by hotel, in the order of their answers */
  const booked = {};
  // How many of a hotel's bookings a version of its page has, from the first on. A version always has
  // the same, and to search a page costs this VU more than all else.
  /** @type {Record<string, number>} */
  const has = {};

  return {
    /**
     * @param {string} hotel
     * @param {string} id
     * @param {number} at when it was answered, Unix time in ms
     */
    booked(hotel, id, at) {
      (booked[hotel] = booked[hotel] || []).push({ id, at });
    },

    /**
     * How long the page had been superseded when it was asked for, at least: since the answer to the
     * first booking that it lacks. 0 for one that lacks none.
     * @param {string} hotel
     * @param {string} version of the page, its ETag
     * @param {string} page
     * @param {number} asked Unix time in ms
     */
    staleMs(hotel, version, page, asked) {
      const all = booked[hotel] || [];
      const known = `${hotel} ${version}`;
      let n = has[known] || 0;
      while (n < all.length && page.includes(all[n].id)) n++;
      has[known] = n;
      return n < all.length && all[n].at <= asked ? asked - all[n].at : 0;
    },
  };
}
