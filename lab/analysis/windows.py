"""From the pushes of a run's counters to windows that slide over it.

Pure: it reads no clock, no file and no network.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lab.analysis.prometheus import Series
from lab.load.plan import Plan

WINDOW_SECONDS = 5
STEP_SECONDS = 1

# What is counted comes to Prometheus by pushes of a second (K6_PROMETHEUS_RW_PUSH_INTERVAL).
PUSH_SECONDS = 1
# Percentiles are queried for each second; one is looked for this far back.
_REACH_SECONDS = 1.5

# Arrivals are whole requests: at 3/s a window holds 15, and one in flight at its edge would be 7 %.
# A shortfall of up to this many requests says nothing.
_WHOLE_REQUESTS = 2


@dataclass(frozen=True)
class Bounds:
    """What counts as unbroken."""

    p95_ms: float = 1000
    error_ratio: float = 0.01
    achieved_ratio: float = 0.95


@dataclass(frozen=True)
class Counters:
    """Running totals at a moment, as Prometheus has them; `p95_ms` is of the window before it."""

    answers: float
    errors: float
    in_time: float
    dropped: float
    p95_ms: float | None


@dataclass(frozen=True)
class Window:
    """WINDOW_SECONDS of a run; `end` in seconds since the load began, rates per second.

    `due` is what had to be answered in it: what was offered a bound and a push earlier. On a ramp
    less was offered then, and an answer within the bound is not late.
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


def windows(plan: Plan, at: Callable[[float], Counters], bounds: Bounds) -> list[Window]:
    """The windows of a run. `at` gives the counters at a moment of the plan."""
    ends = range(WINDOW_SECONDS, int(plan.seconds) + 1, STEP_SECONDS)
    return [_window(plan, at, bounds, end) for end in ends]


def _window(plan: Plan, at: Callable[[float], Counters], bounds: Bounds, end: float) -> Window:
    start = end - WINDOW_SECONDS
    before, after = at(start), at(end)
    answers = after.answers - before.answers
    dropped = (after.dropped - before.dropped) / WINDOW_SECONDS
    offered = plan.offered(start, end)
    late = bounds.p95_ms / 1000 + PUSH_SECONDS
    due, achieved = plan.offered(start - late, end - late), answers / WINDOW_SECONDS
    if plan.unit == "iterations":
        # Whole journeys end long after they arrive: what was not dropped was taken on.
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
    )
    return replace(window, broken=_broken(window, bounds))


def _broken(window: Window, bounds: Bounds) -> tuple[str, ...]:
    reasons = []
    if window.p95_ms is not None and window.p95_ms > bounds.p95_ms:
        reasons.append(f"p95 {window.p95_ms:.0f} ms > {bounds.p95_ms:.0f} ms")
    if window.error_ratio > bounds.error_ratio:
        reasons.append(f"errors {window.error_ratio:.1%} > {bounds.error_ratio:.1%}")
    missing = window.due - window.achieved
    tolerated = max((1 - bounds.achieved_ratio) * window.due, _WHOLE_REQUESTS / WINDOW_SECONDS)
    if missing > tolerated:
        share = window.achieved / window.due
        reasons.append(f"achieved {share:.0%} of the offered rate < {bounds.achieved_ratio:.0%}")
    return tuple(reasons)


def highest_rate(totals: Sequence[float]) -> float | None:
    """The most per second in any window, of running totals in steps of STEP_SECONDS; None when they
    are shorter than a window.
    """
    apart = WINDOW_SECONDS // STEP_SECONDS
    gained = (end - start for start, end in zip(totals, totals[apart:], strict=False))
    most = max(gained, default=None)
    return None if most is None else most / WINDOW_SECONDS


class Counter:
    """The sum of several series of a counter, such as those of its names and states, as it was at
    any moment; nothing was counted before `began`.

    k6 pushes once a second, each series with the time of its newest sample. Between two pushes the
    count lies between their values. To take the last push for it would make windows of 5 s hold
    four, five or six of them: where pushes come just about a window's edge, a steady rate read a
    fifth more.
    """

    def __init__(self, series: Sequence[Series], began: float = 0.0) -> None:
        self._series = [sorted(one.items()) for one in series if one]
        self._began = began

    def at(self, when: float) -> float:
        """The count at that moment (Unix time)."""
        return sum(_interpolated(one, when, self._began) for one in self._series)


def _interpolated(pushes: list[tuple[float, float]], when: float, start: float) -> float:
    """Evenly between two pushes; what a push brings came in the second before it."""
    index = bisect_right(pushes, when, key=lambda push: push[0])
    if index == len(pushes):
        return pushes[-1][1]
    at, value = pushes[index]
    before_at, before = pushes[index - 1] if index else (start, 0.0)
    # While nothing is counted nothing is pushed; a push may be late by itself.
    silent = at - before_at >= 2 * PUSH_SECONDS
    began = at - PUSH_SECONDS if silent else before_at
    if when <= began:
        return before
    return before + (value - before) * (when - began) / (at - began)


@dataclass(frozen=True)
class Totals:
    """The counters of a run that `started` then (Unix time)."""

    started: float
    good: Counter
    bad: Counter
    in_time: Counter
    dropped: Counter
    p95: Series

    def at(self, moment: float) -> Counters:
        """The running totals at that second of the plan."""
        when = self.started + moment
        good, errors = self.good.at(when), self.bad.at(when)
        p95 = _last(self.p95, when)
        return Counters(
            answers=good + errors,
            errors=errors,
            in_time=self.in_time.at(when),
            dropped=self.dropped.at(when),
            p95_ms=None if p95 is None else p95 * 1000,
        )

    def max_rps(self, seconds: float) -> float | None:
        """The most successful answers per second in any window; None for a shorter load."""
        moments = range(0, int(seconds) + 1, STEP_SECONDS)
        return highest_rate([self.good.at(self.started + at) for at in moments])


def _last(series: Series, when: float) -> float | None:
    """The newest value at or before `when`. Queries step by whole seconds from the start."""
    moments = [moment for moment in series if when - _REACH_SECONDS <= moment <= when + 0.01]
    return series[max(moments)] if moments else None
