"""The summary that k6 writes at the end of a run (k6/lib/summary.js), read once and typed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab.load.plan import Plan, parse_plan


@dataclass(frozen=True)
class Summary:
    """k6's own metrics, and what the script says of its load; seconds of the load without setup.

    `started` is the first arrival (Unix time), None when nothing was sent. `planned_seconds` is how
    long arrivals were to come, None where the profile ends with its work. `metrics` has statistics
    by metric, some of them once more by tag: `http_reqs{scenario:list}`.
    """

    scenario: str
    started: float | None
    seconds: float
    planned_seconds: float | None = None
    plan: Plan | None = None
    hotels: int | None = None
    metrics: Mapping[str, Mapping[str, float | None]] | None = None

    def value(self, metric: str, statistic: str) -> float:
        """A statistic of the load without setup; 0 where k6 counted nothing."""
        known = self.metrics or {}
        of_load = f"{metric}{{scenario:{self.scenario}}}"
        return float(known.get(of_load, known.get(metric, {})).get(statistic) or 0)

    def milliseconds(self, metric: str, statistic: str) -> float | None:
        """A duration to tenths; None where nothing ended that took any."""
        if not self.value(metric, "count"):
            return None
        return round(self.value(metric, statistic), 1)

    def has(self, metric: str) -> bool:
        """Whether the scenario has that metric at all."""
        return metric in (self.metrics or {})

    def until(self, moment: float) -> "Summary":
        """The same load with its plan ended at `moment` (Unix time)."""
        if self.plan is None or self.started is None:
            return self
        plan = self.plan.until(moment - self.started)
        return replace(self, plan=plan, planned_seconds=plan.seconds)

    @property
    def all_requests(self) -> int:
        """Requests of the whole run, setup's included."""
        return int((self.metrics or {}).get("http_reqs", {}).get("count") or 0)

    def counts_by_tag(self, metric: str, tag: str) -> dict[str, int]:
        """Counts of a metric's submetrics, by the value of a tag; without those that are zero."""
        prefix = f"{metric}{{{tag}:"
        counts = {
            name.removeprefix(prefix).rstrip("}"): int(values.get("count") or 0)
            for name, values in (self.metrics or {}).items()
            if name.startswith(prefix)
        }
        return {value: count for value, count in counts.items() if count}


def read_summary(path: Path) -> Summary:
    """The summary in the file at `path`."""
    return parse_summary(json.loads(path.read_text()))


def parse_summary(document: dict[str, Any]) -> Summary:
    """The summary of a document as k6/lib/summary.js writes it."""
    lab = document["lab"]
    started, planned = lab.get("started_at_seconds"), lab.get("duration_seconds")
    return Summary(
        scenario=lab["scenario"],
        started=None if started is None else float(started),
        seconds=float(lab["load_seconds"]),
        planned_seconds=float(planned) if planned else None,
        plan=parse_plan(lab),
        hotels=lab.get("hotels"),
        metrics={name: metric["values"] for name, metric in document["metrics"].items()},
    )
