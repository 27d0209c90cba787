"""From the files and series that a run left behind to what the verdict needs."""

import json
from dataclasses import dataclass, replace
from typing import Any

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
from lab.analysis.completeness import Recorded, recorded
from lab.analysis.counters import Pushed
from lab.analysis.prometheus import Prometheus, Series, Unanswered
from lab.errors import LabError
from lab.load.k6 import Run
from lab.load.plan import Plan, read_plan

# Percentiles are asked for each second; one is looked for this far back.
_REACH_SECONDS = 1.5


@dataclass(frozen=True)
class Collected:
    """A run's summary as k6 wrote it, what Prometheus has of it, and its windows.

    There are no windows when the profile has no plan, or when Prometheus lacks a part of the run.
    `max_rps` are the most successful answers per second in any window; None without a whole record,
    and for a shorter load.
    """

    summary: dict[str, Any]
    plan: Plan | None
    load_started: float
    windows: list[Window]
    recorded: Recorded
    max_rps: float | None = None

    @property
    def load_seconds(self) -> float:
        """From the load's first arrival to its last answer; setup is no part of it."""
        return float(self.summary["lab"]["load_seconds"])

    @property
    def planned_seconds(self) -> float | None:
        """How long arrivals were to come; None where the profile ends with its work."""
        planned = self.summary["lab"].get("duration_seconds")
        return float(planned) if planned else None

    def value(self, metric: str, statistic: str) -> float:
        """See `figure`."""
        return figure(self.summary, metric, statistic)

    def milliseconds(self, metric: str, statistic: str) -> float | None:
        """A figure of what took time, to tenths; None where nothing ended that took any."""
        if not self.value(metric, "count"):
            return None
        return round(self.value(metric, statistic), 1)


def figure(summary: dict[str, Any], metric: str, statistic: str) -> float:
    """A figure of k6's own summary, of the load without setup; 0 where k6 counted nothing."""
    found = summary["metrics"]
    of_load = f"{metric}{{scenario:{summary['lab']['scenario']}}}"
    values = found.get(of_load, found.get(metric, {})).get("values", {})
    return float(values.get(statistic) or 0)


def collect(run: Run, prometheus: Prometheus, bounds: Bounds) -> Collected:
    """Read the summary and, for an open-model profile, the run's counters from Prometheus.

    Raises:
        LabError: k6 sent nothing, or not for long enough.
    """
    summary = json.loads(run.summary.read_text())
    plan = read_plan(summary["lab"])
    if summary["lab"]["started_at_seconds"] is None:
        raise LabError(f"k6 sent nothing: {run.load.profile} asked for no arrival in its time.")
    started = float(summary["lab"]["started_at_seconds"])
    if plan is not None and plan.seconds < SHORTEST_SECONDS:
        raise LabError(
            f"The load lasted {plan.seconds:.0f} s: too short to judge. Its counts are in "
            f"{run.summary}. Give it --duration {SHORTEST_SECONDS}s or more."
        )
    there = _recorded(run, summary, started)
    if not there.readable:
        return Collected(summary, plan, started, [], there)
    seconds = float(summary["lab"]["load_seconds"])
    try:
        totals = _totals(run.load.testid, started, seconds, prometheus)
    except Unanswered:
        return Collected(summary, plan, started, [], replace(there, prometheus=None))
    found = windows(plan, totals.at, bounds) if plan else []
    return Collected(summary, plan, started, found, there, totals.max_rps(seconds))


def _recorded(run: Run, summary: dict[str, Any], started: float) -> Recorded:
    counted = int(summary["metrics"]["http_reqs"]["values"]["count"])
    # It is asked again and again, and may hang.
    prometheus = Prometheus(run.settings.prometheus_url, timeout_seconds=3)
    seconds = float(summary["lab"]["load_seconds"])
    return recorded(run.load.testid, counted, started, seconds, prometheus)


@dataclass(frozen=True)
class _Totals:
    """What was counted of a run that `started` then."""

    started: float
    good: Pushed
    bad: Pushed
    in_time: Pushed
    dropped: Pushed
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
    pushed = {
        name: Pushed(prometheus.samples(selector, started - PUSH_SECONDS, ended), started)
        for name, selector in queries.counters(testid).items()
    }
    found = prometheus.over(queries.percentile(testid, 0.95, WINDOW_SECONDS), started, ended)
    return _Totals(started, **pushed, p95=found[0] if found else {})


def _last(series: Series, when: float) -> float | None:
    """The newest value at or before `when`. Queries step by whole seconds from the start."""
    moments = [moment for moment in series if when - _REACH_SECONDS <= moment <= when + 0.01]
    return series[max(moments)] if moments else None
