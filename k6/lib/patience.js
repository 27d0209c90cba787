// @ts-check
// How a careful client goes on after a failure: the same request again, later each time, not all
// clients at once, and not for ever.

const FIRST_MS = 100;
const LONGEST_MS = 2000;
export const GIVE_UP_MS = 30000;

/**
 * Whether another try may end otherwise: no answer at all, an error of the server's, too many requests,
 * or the first try of the same key still runs. Any other answer is the answer.
 * @param {number} status 0 without an answer
 * @param {string | null} code of the error
 */
export function worthAgain(status, code) {
  return (
    status === 0 || status === 429 || status >= 500 || (status === 409 && code === 'in_progress')
  );
}

/**
 * Until the next try: never sooner than the server asked for, and by chance up to twice as long as the
 * shortest, so that those who failed together do not come again together.
 * @param {number} tries made so far
 * @param {number | null} retryAfterSeconds what the server asked for
 * @param {number} [chance] 0 to 1
 */
export function pauseMs(tries, retryAfterSeconds, chance = Math.random()) {
  const backoff = Math.min(FIRST_MS * 2 ** (tries - 1), LONGEST_MS);
  return Math.max((retryAfterSeconds || 0) * 1000, backoff / 2) * (1 + chance);
}
