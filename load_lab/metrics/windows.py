"""Build the sliding windows of a run from the pushes of its counters.

Pure: it reads no clock, no file and no network.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from load_lab.metrics.counters import PUSH_SECONDS, Counter, HistogramCounter, mean, quantile
from load_lab.metrics.plan import Plan

# How the reason of a window with too many errors begins.
ERRORS = "errors"
WINDOW_SECONDS = 5
STEP_SECONDS = 1

# Arrivals are whole requests: at 3/s a window has 15, and one in flight at its edge is 7 %. A
# shortfall of up to this many requests is not significant.
_MAX_SHORTFALL = 2


@dataclass(frozen=True)
class Bounds:
    """The limits of a run; a window that exceeds one is broken."""

    p95_ms: float = 1000
    error_ratio: float = 0.01
    achieved_ratio: float = 0.95


@dataclass(frozen=True)
class Counters:
    """Running totals at a moment, from Prometheus; `p95_ms` and `mean_ms` are for the window before
    it.
    """

    answers: float
    errors: float
    in_time: float
    dropped: float
    p95_ms: float | None
    mean_ms: float | None = None


@dataclass(frozen=True)
class Window:
    """WINDOW_SECONDS of a run; `end` in seconds since the load began, rates per second.

    `due` is the rate of responses due: the offered rate, one response time limit and one push
    interval earlier. On a ramp, that rate was lower, and a response within the limit is not late.
    """

    end: float
    offered: float
    due: float
    achieved: float
    goodput: float
    error_ratio: float
    dropped: float
    p95_ms: float | None
    broken: tuple[str, ...] = field(default=())
    mean_ms: float | None = None


def windows(
    plan: Plan, at: Callable[[float], Counters], bounds: Bounds, after: float = 0
) -> list[Window]:
    """Return the windows of a run that end later than `after`; `at` returns the counters at a
    moment of the plan.
    """
    ends = range(WINDOW_SECONDS, int(plan.seconds) + 1, STEP_SECONDS)
    return [_window(plan, at, bounds, end) for end in ends if end > after]


def _window(plan: Plan, at: Callable[[float], Counters], bounds: Bounds, end: float) -> Window:
    start = end - WINDOW_SECONDS
    before, after = at(start), at(end)
    answers = after.answers - before.answers
    dropped = (after.dropped - before.dropped) / WINDOW_SECONDS
    offered = plan.offered(start, end)
    late = bounds.p95_ms / 1000 + PUSH_SECONDS
    due, achieved = plan.offered(start - late, end - late), answers / WINDOW_SECONDS
    if plan.unit == "iterations":
        # Journeys end long after they arrive, so every iteration that was not dropped counts as
        # achieved.
        due, achieved = offered, offered - dropped
    window = Window(
        end=end,
        offered=offered,
        due=due,
        achieved=achieved,
        goodput=(after.in_time - before.in_time) / WINDOW_SECONDS,
        error_ratio=(after.errors - before.errors) / answers if answers else 0.0,
        dropped=dropped,
        p95_ms=after.p95_ms,
        mean_ms=after.mean_ms,
    )
    return replace(window, broken=_violations(window, bounds))


def _violations(window: Window, bounds: Bounds) -> tuple[str, ...]:
    reasons = []
    if window.p95_ms is not None and window.p95_ms > bounds.p95_ms:
        reasons.append(f"p95 {window.p95_ms:.0f} ms > {bounds.p95_ms:.0f} ms")
    if window.error_ratio > bounds.error_ratio:
        reasons.append(f"{ERRORS} {window.error_ratio:.1%} > {bounds.error_ratio:.1%}")
    missing = window.due - window.achieved
    tolerance = max((1 - bounds.achieved_ratio) * window.due, _MAX_SHORTFALL / WINDOW_SECONDS)
    if missing > tolerance:
        share = window.achieved / window.due
        reasons.append(f"achieved {share:.0%} of the offered rate < {bounds.achieved_ratio:.0%}")
    return tuple(reasons)


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def highest_rate(totals: Sequence[float]) -> float | None:
    """Return the highest rate per second in any window; None when `totals` are shorter than a
    window.

    `totals` are running totals in steps of STEP_SECONDS.
    """
    steps = WINDOW_SECONDS // STEP_SECONDS
    increases = (end - start for start, end in zip(totals, totals[steps:], strict=False))
    highest = max(increases, default=None)
    return None if highest is None else highest / WINDOW_SECONDS


@dataclass(frozen=True)
class Totals:
    """The counters of a run that started at `started` (Unix time)."""

    started: float
    good: Counter
    bad: Counter
    in_time: Counter
    dropped: Counter
    durations: HistogramCounter

    def at(self, moment: float) -> Counters:
        """Return the running totals at that second of the plan."""
        when = self.started + moment
        good, errors = self.good.at(when), self.bad.at(when)
        durations = self.durations.between(when - WINDOW_SECONDS, when)
        return Counters(
            answers=good + errors,
            errors=errors,
            in_time=self.in_time.at(when),
            dropped=self.dropped.at(when),
            p95_ms=_milliseconds(quantile(durations, 0.95)),
            mean_ms=_milliseconds(mean(durations)),
        )

    def max_rps(self, seconds: float) -> float | None:
        """Return the highest rate of successful responses in any window; None for a shorter
        load.
        """
        moments = range(0, int(seconds) + 1, STEP_SECONDS)
        return highest_rate([self.good.at(self.started + at) for at in moments])
