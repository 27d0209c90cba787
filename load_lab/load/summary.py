"""The typed summary that k6 writes at the end of a run (k6/lib/summary.js)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from load_lab.metrics.plan import Plan, parse_plan


@dataclass(frozen=True)
class GeneratorPart:
    """What one of several generators counted, from `started` to `ended` (Unix time); None where it
    left no summary.
    """

    name: str
    requests: int | None
    started: float | None
    ended: float | None


@dataclass(frozen=True)
class Summary:
    """k6's metrics, and the script's data about the load; `seconds` is the load without setup.

    `started` is the first arrival (Unix time); None when nothing was sent. `planned_seconds` is the
    planned duration of arrivals; None where the profile ends with its work. `metrics` has
    statistics by metric, for some metrics also by tag: `http_reqs{scenario:list}`. `generators`: if
    several shared the load; then there are no percentiles.
    """

    scenario: str
    started: float | None
    seconds: float
    planned_seconds: float | None = None
    plan: Plan | None = None
    metrics: Mapping[str, Mapping[str, float | None]] | None = None
    generators: tuple[GeneratorPart, ...] = ()

    def value(self, metric: str, statistic: str) -> float:
        """Return a statistic of the load without setup; 0 where k6 counted nothing."""
        metrics = self.metrics or {}
        load_metric = f"{metric}{{scenario:{self.scenario}}}"
        return float(metrics.get(load_metric, metrics.get(metric, {})).get(statistic) or 0)

    @property
    def requests(self) -> int:
        return int(self.value("http_reqs", "count"))

    @property
    def failed(self) -> int:
        return int(self.value("http_req_failed", "passes"))

    @property
    def good(self) -> int:
        """Return the requests that were answered without an error."""
        return self.requests - self.failed

    def milliseconds(self, metric: str, statistic: str) -> float | None:
        """Return a duration in ms, rounded to tenths; None without samples."""
        if not self.value(metric, "count") or not self._has(metric, statistic):
            return None
        return round(self.value(metric, statistic), 1)

    def _has(self, metric: str, statistic: str) -> bool:
        values = (self.metrics or {}).get(metric, {})
        return values.get(statistic) is not None

    def has(self, metric: str) -> bool:
        """Return whether the scenario has that metric."""
        return metric in (self.metrics or {})

    def until(self, moment: float) -> "Summary":
        """Return the same load with its plan ended at `moment` (Unix time)."""
        if self.plan is None or self.started is None:
            return self
        plan = self.plan.until(moment - self.started)
        return replace(self, plan=plan, planned_seconds=plan.seconds)

    @property
    def all_requests(self) -> int:
        """Return the requests of the whole run, setup's included."""
        return int((self.metrics or {}).get("http_reqs", {}).get("count") or 0)

    def counts_by_tag(self, metric: str, tag: str) -> dict[str, int]:
        """Return the nonzero counts of a metric's submetrics, by the value of a tag."""
        prefix = f"{metric}{{{tag}:"
        counts = {
            name.removeprefix(prefix).rstrip("}"): int(values.get("count") or 0)
            for name, values in (self.metrics or {}).items()
            if name.startswith(prefix)
        }
        return {value: count for value, count in counts.items() if count}


def read_summary(path: Path) -> Summary:
    return parse_summary(json.loads(path.read_text()))


def parse_summary(document: dict[str, Any]) -> Summary:
    """Return the summary in a document of k6/lib/summary.js."""
    lab = document["lab"]
    started, planned = lab.get("started_at_seconds"), lab.get("duration_seconds")
    return Summary(
        scenario=lab["scenario"],
        started=None if started is None else float(started),
        # Null if setup did not complete.
        seconds=float(lab["load_seconds"] or 0),
        planned_seconds=float(planned) if planned else None,
        plan=parse_plan(lab),
        metrics={name: metric["values"] for name, metric in document["metrics"].items()},
        generators=tuple(_part(part) for part in document.get("generators", ())),
    )


def _part(part: dict[str, Any]) -> GeneratorPart:
    started, seconds = part["started_at_seconds"], part["load_seconds"]
    ended = None if started is None else started + (seconds or 0)
    return GeneratorPart(part["name"], part["requests"], started, ended)
