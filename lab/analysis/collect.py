"""A run read back: the counters that k6 pushed, and the windows that lie over them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lab.analysis import queries
from lab.analysis.breakpoint import (
    PUSH_SECONDS,
    SHORTEST_SECONDS,
    STEP_SECONDS,
    WINDOW_SECONDS,
    Bounds,
    Counters,
    Window,
    highest_rate,
    windows,
)
from lab.analysis.completeness import Completeness, measure_completeness
from lab.analysis.prometheus import Prometheus, Series, Unanswered
from lab.errors import LabError
from lab.load.k6 import Run
from lab.load.summary import Summary

# Percentiles are queried for each second; one is looked for this far back.
_REACH_SECONDS = 1.5
# The completeness is polled, and a Prometheus that hangs must not hold each poll up for long.
_POLL_TIMEOUT_SECONDS = 3


@dataclass(frozen=True)
class Collected:
    """What Prometheus has of a run that `started` (Unix time), and its windows.

    There are no windows when the profile has no plan, or when Prometheus lacks a part of the run.
    `max_rps` are the most successful answers per second in any window; None without a whole record,
    and for a shorter load.
    """

    started: float
    completeness: Completeness
    windows: list[Window]
    max_rps: float | None = None


def collect(run: Run, summary: Summary, prometheus: Prometheus, bounds: Bounds) -> Collected:
    """Read the run's counters from Prometheus; for an open-model profile with its windows.

    Raises:
        LabError: k6 sent nothing, or not for long enough.
    """
    started = _start_of_load(run, summary)
    completeness = _completeness(run, summary, started)
    if not completeness.readable:
        return Collected(started, completeness, [])
    try:
        totals = _totals(run.load.testid, started, summary.seconds, prometheus)
    except Unanswered:
        return Collected(started, replace(completeness, prometheus=None), [])
    found = windows(summary.plan, totals.at, bounds) if summary.plan else []
    return Collected(started, completeness, found, totals.max_rps(summary.seconds))


def _start_of_load(run: Run, summary: Summary) -> float:
    if summary.started is None:
        raise LabError(f"k6 sent nothing: {run.load.profile} has no arrival in its duration.")
    if summary.plan is not None and summary.plan.seconds < SHORTEST_SECONDS:
        raise LabError(
            f"The load lasted {summary.plan.seconds:.0f} s: too short to judge. Its counts are in "
            f"{run.summary_file}. Give it --duration {SHORTEST_SECONDS}s or more."
        )
    return summary.started


def _completeness(run: Run, summary: Summary, started: float) -> Completeness:
    prometheus = Prometheus(run.settings.prometheus_url, _POLL_TIMEOUT_SECONDS)
    return measure_completeness(
        run.load.testid, summary.all_requests, started, summary.seconds, prometheus
    )


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
class _Totals:
    """The counters of a run that `started` then."""

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
        """See `Collected`."""
        moments = range(0, int(seconds) + 1, STEP_SECONDS)
        return highest_rate([self.good.at(self.started + at) for at in moments])


def _totals(testid: str, started: float, seconds: float, prometheus: Prometheus) -> _Totals:
    ended = started + seconds + 1
    # From the whole second before it on, in which k6 may have pushed zeros.
    counters = {
        name: Counter(prometheus.samples(selector, started - PUSH_SECONDS, ended), started)
        for name, selector in queries.counters(testid).items()
    }
    found = prometheus.over(queries.percentile(testid, 0.95, WINDOW_SECONDS), started, ended)
    return _Totals(started, **counters, p95=found[0] if found else {})


def _last(series: Series, when: float) -> float | None:
    """The newest value at or before `when`. Queries step by whole seconds from the start."""
    moments = [moment for moment in series if when - _REACH_SECONDS <= moment <= when + 0.01]
    return series[max(moments)] if moments else None
