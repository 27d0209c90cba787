"""What a profile offers: the arrival rate that k6 was told, as a function of time."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Stage:
    """The rate goes in a straight line from `start` to `end` (per second) in `seconds`."""

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

    def arrivals(self, until: float) -> float:
        """How many arrivals the plan has in its first `until` seconds."""
        total, begun = 0.0, 0.0
        for stage in self.stages:
            inside = min(max(until - begun, 0.0), stage.seconds)
            slope = (stage.end - stage.start) / stage.seconds
            total += stage.start * inside + slope * inside**2 / 2
            begun += stage.seconds
        return total

    def offered(self, start: float, end: float) -> float:
        """The mean arrival rate between two moments of the plan."""
        return (self.arrivals(end) - self.arrivals(start)) / (end - start)
