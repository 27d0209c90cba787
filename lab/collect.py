"""From the files and series that a run left behind to what the verdict needs."""

import json
from dataclasses import dataclass
from typing import Any

from lab import metrics
from lab.breakpoint import SHORTEST_SECONDS, WINDOW_SECONDS, Bounds, Counters, Window, windows
from lab.errors import LabError
from lab.k6 import Run
from lab.plan import Plan, read_plan
from lab.prometheus import Prometheus, Series

# k6 pushes every second; a value is looked for this far back.
_REACH_SECONDS = 5


@dataclass(frozen=True)
class Collected:
    """A run's summary as k6 wrote it, and its windows when the profile has a plan."""

    summary: dict[str, Any]
    plan: Plan | None
    load_started: float
    windows: list[Window]

    @property
    def load_seconds(self) -> float:
        """From the load's first arrival to its last answer; setup is no part of it."""
        return float(self.summary["lab"]["load_seconds"])

    def value(self, metric: str, statistic: str) -> float:
        """A figure of k6's own summary, of the load without setup; 0 where k6 counted nothing."""
        found = self.summary["metrics"]
        of_load = f"{metric}{{scenario:{self.summary['lab']['scenario']}}}"
        values = found.get(of_load, found.get(metric, {})).get("values", {})
        return float(values.get(statistic) or 0)


def collect(run: Run, prometheus: Prometheus, bounds: Bounds) -> Collected:
    """Read the summary and, for an open-model profile, the run's counters from Prometheus.

    Raises:
        LabError: Prometheus has nothing of this run.
    """
    summary = json.loads(run.summary.read_text())
    plan = read_plan(summary["lab"])
    if summary["lab"]["started_at_seconds"] is None:
        raise LabError(f"k6 sent nothing: {run.load.profile} asked for no arrival in its time.")
    started = float(summary["lab"]["started_at_seconds"])
    if plan is None:
        return Collected(summary, None, started, [])
    if plan.seconds < SHORTEST_SECONDS:
        raise LabError(
            f"The load lasted {plan.seconds:.0f} s: too short to judge. Its counts are in "
            f"{run.summary}. Give it --duration {SHORTEST_SECONDS}s or more."
        )
    totals = _totals(run.load.testid, started, plan, prometheus)
    return Collected(summary, plan, started, windows(plan, totals.at, bounds))


@dataclass(frozen=True)
class _Totals:
    """The series of a run that `started` then."""

    started: float
    good: Series
    bad: Series
    in_time: Series
    dropped: Series
    p95: Series

    def at(self, moment: float) -> Counters:
        """The running totals at that second of the plan."""
        when = self.started + moment
        good, errors = _last(self.good, when) or 0, _last(self.bad, when) or 0
        p95 = _last(self.p95, when, reach=1.5)
        return Counters(
            answers=good + errors,
            errors=errors,
            in_time=_last(self.in_time, when) or 0,
            dropped=_last(self.dropped, when) or 0,
            p95_ms=None if p95 is None else p95 * 1000,
        )


def _totals(testid: str, started: float, plan: Plan, prometheus: Prometheus) -> _Totals:
    span = (started, started + plan.seconds + 1)

    def series(query: str) -> Series:
        found = prometheus.over(query, *span)
        return found[0] if found else {}

    by_outcome = _answers(testid, prometheus, span)
    return _Totals(
        started,
        good=by_outcome.get("true", {}),
        bad=by_outcome.get("false", {}),
        in_time=series(metrics.answers_in_time(testid)),
        dropped=series(metrics.iterations_dropped(testid)),
        p95=series(metrics.percentile(testid, 0.95, WINDOW_SECONDS)),
    )


def _answers(testid: str, prometheus: Prometheus, span: tuple[float, float]) -> dict[str, Series]:
    """By whether the answer was the expected one."""
    query = metrics.requests_by_outcome(testid)
    found = prometheus.by_label(query, "expected_response", *span)
    if not found:
        raise LabError(
            f"Prometheus has no samples of {testid}: k6 could not push them. See what "
            "k6 said, and `lab logs prometheus`."
        )
    return found


def _last(series: Series, when: float, reach: float = _REACH_SECONDS) -> float | None:
    """The newest value at or before `when`. Queries step by whole seconds from the start."""
    moments = [moment for moment in series if when - reach <= moment <= when + 0.01]
    return series[max(moments)] if moments else None
