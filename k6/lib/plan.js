// @ts-check
// Arithmetic on a profile's plan: what it asks for at a moment, and in all.

/** @typedef {import('./profiles.js').Profile} Profile */
/** @typedef {import('./profiles.js').PlanStage} PlanStage */

/**
 * Arrivals per second that the plan asks for; 0 before it starts and after it ends.
 * @param {PlanStage[]} plan
 * @param {number} elapsedSeconds since the scenario's start
 */
export function targetRateAt(plan, elapsedSeconds) {
  let left = elapsedSeconds;
  if (left < 0) return 0;
  for (const { duration_seconds, from, to } of plan) {
    if (left <= duration_seconds) return from + ((to - from) * left) / duration_seconds;
    left -= duration_seconds;
  }
  return 0;
}

// A closed load without pauses has no plan; no target of the lab answers more bookings per second.
const CLOSED_RATE_MAX = 2000;

/**
 * The most iterations that the profile can start.
 * @param {Profile} profile
 * @param {number} pauseSeconds after each request of a visitor, so an iteration is no shorter
 */
export function iterationsPlanned(profile, pauseSeconds) {
  if (profile.plan === null && profile.unit === 'requests') {
    return CLOSED_RATE_MAX * Math.ceil(profile.durationSeconds);
  }
  if (profile.plan === null) {
    return profile.maxVUs * (Math.ceil(profile.durationSeconds / pauseSeconds) + 1);
  }
  const stages = profile.plan.map(
    (stage) => (stage.duration_seconds * (stage.from + stage.to)) / 2,
  );
  return Math.ceil(stages.reduce((sum, arrivals) => sum + arrivals, 0));
}
