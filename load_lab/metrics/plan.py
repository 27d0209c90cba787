"""The plan of a profile: its arrival rate as a function of time."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Stage:
    """The rate changes linearly from `start` to `end` (per second) in `seconds`."""

    seconds: float
    start: float
    end: float


@dataclass(frozen=True)
class Plan:
    """The stages of an open-model profile, in `unit` per second."""

    stages: tuple[Stage, ...]
    unit: Literal["requests", "iterations"]

    @property
    def seconds(self) -> float:
        return sum(stage.seconds for stage in self.stages)

    @property
    def top_rate(self) -> float:
        return max(max(stage.start, stage.end) for stage in self.stages)

    def until(self, seconds: float) -> "Plan":
        """Return the plan's first `seconds`."""
        stages, remaining = list[Stage](), seconds
        for stage in self.stages:
            if remaining <= 0:
                break
            inside = min(remaining, stage.seconds)
            end = stage.start + (stage.end - stage.start) * inside / stage.seconds
            stages.append(Stage(inside, stage.start, end))
            remaining -= inside
        return Plan(tuple(stages), self.unit)

    def arrivals(self, until: float) -> float:
        """Return the number of arrivals in the plan's first `until` seconds."""
        total, elapsed = 0.0, 0.0
        for stage in self.stages:
            inside = min(max(until - elapsed, 0.0), stage.seconds)
            slope = (stage.end - stage.start) / stage.seconds
            total += stage.start * inside + slope * inside**2 / 2
            elapsed += stage.seconds
        return total

    def offered(self, start: float, end: float) -> float:
        """Return the mean arrival rate between two moments of the plan."""
        return (self.arrivals(end) - self.arrivals(start)) / (end - start)


def parse_plan(document: dict[str, Any]) -> Plan | None:
    """Return the plan in `unit` and `plan` of k6's scripts; None for a closed-model profile."""
    if not document.get("plan"):
        return None
    stages = (Stage(s["duration_seconds"], s["from"], s["to"]) for s in document["plan"])
    return Plan(tuple(stages), document["unit"])
