"""Measured values with their limits, for overloads and soaks."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from load_lab.metrics.prometheus import Prometheus


@dataclass(frozen=True)
class LimitCheck:
    """A measured value and its limit. None means not measured, which violates the limit."""

    what: str
    bound: float
    at_most: bool
    value: float | None

    @property
    def passed(self) -> bool:
        """Return whether the limit was met."""
        if self.value is None:
            return False
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "kept": self.passed}


def at_most(what: str, bound: float, value: float | None) -> LimitCheck:
    return LimitCheck(what, bound, True, value)


def at_least(what: str, bound: float, value: float | None) -> LimitCheck:
    return LimitCheck(what, bound, False, value)


def mib(size: float) -> float:
    # Not -0.
    return round(size / 1024**2, 1) + 0.0


def peaks(
    prometheus: Prometheus,
    limits: Mapping[str, int],
    start: float,
    end: float,
    step: float = 1,
) -> dict[str, int]:
    """Return the peak memory, in bytes, of each service that has a limit between two Unix times."""
    if not limits:
        return {}
    # Includes the time between two steps; Prometheus evaluates the rule every 5 s.
    query = f"max_over_time(service:memory_bytes[{max(10, ceil(step))}s])"
    peaks_by_service = prometheus.by_label(query, "service", start, end, step)
    return {
        name: round(max(series.values()))
        for name, series in sorted(peaks_by_service.items())
        if name in limits and series
    }


def memory_checks(
    limits: Mapping[str, int], peaks_by_service: Mapping[str, int]
) -> Iterator[LimitCheck]:
    """Yield the memory of each service, in MiB; a missing value violates its limit."""
    for name, limit in limits.items():
        peak = peaks_by_service.get(name)
        yield at_most(f"memory of {name}, MiB", mib(limit), None if peak is None else mib(peak))
