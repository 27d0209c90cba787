"""From the files and series that a run left behind to what the verdict needs."""

import json
from collections.abc import Callable
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
    at = _counters(run, started, plan, prometheus)
    return Collected(summary, plan, started, windows(plan, at, bounds))


def _counters(
    run: Run, started: float, plan: Plan, prometheus: Prometheus
) -> Callable[[float], Counters]:
    """A function from seconds of the plan to the running totals at that moment."""
    testid = run.load.testid
    span = (started, started + plan.seconds + 1)
    by_outcome = prometheus.by_label(
        metrics.requests_by_outcome(testid), "expected_response", *span
    )
    if not by_outcome:
        raise LabError(
            f"Prometheus has no samples of {testid}: k6 could not push them. See what "
            "k6 said, and `lab logs prometheus`."
        )
    in_time = _only(prometheus.over(metrics.answers_in_time(testid), *span))
    dropped = _only(prometheus.over(metrics.iterations_dropped(testid), *span))
    p95 = _only(prometheus.over(metrics.percentile(testid, 0.95, WINDOW_SECONDS), *span))

    def at(moment: float) -> Counters:
        when = started + moment
        good, bad = (_last(by_outcome.get(label, {}), when) or 0 for label in ("true", "false"))
        seconds = _last(p95, when, reach=1.5)
        return Counters(
            answers=good + bad,
            errors=bad,
            in_time=_last(in_time, when) or 0,
            dropped=_last(dropped, when) or 0,
            p95_ms=None if seconds is None else seconds * 1000,
        )

    return at


def _only(found: list[Series]) -> Series:
    return found[0] if found else {}


def _last(series: Series, when: float, reach: float = _REACH_SECONDS) -> float | None:
    """The newest value at or before `when`. Queries step by whole seconds from the start."""
    moments = [moment for moment in series if when - reach <= moment <= when + 0.01]
    return series[max(moments)] if moments else None
