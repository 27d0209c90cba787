"""Measured values with their limits, for overloads and soaks."""

from collections.abc import Iterator
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


_MIB = 1024**2
# The limits in docker-compose.yml (a test compares them). Plain processes have no limit of memory,
# but are checked against the same values.
MEMORY_LIMITS = {
    "postgres": 1024 * _MIB,
    "redis": 384 * _MIB,
    "backend": 1024 * _MIB,
    "nginx": 1536 * _MIB,
}


def peaks(prometheus: Prometheus, start: float, end: float, step: float = 1) -> dict[str, int]:
    """Return the peak memory, in bytes, of each service of the target between two Unix times."""
    # Includes the time between two steps; Prometheus evaluates the rule every 5 s.
    query = f"max_over_time(service:memory_bytes[{max(10, ceil(step))}s])"
    peaks_by_service = prometheus.by_label(query, "service", start, end, step)
    return {
        name: round(max(series.values()))
        for name, series in sorted(peaks_by_service.items())
        if name in MEMORY_LIMITS and series
    }


def memory_checks(peaks_by_service: dict[str, int]) -> Iterator[LimitCheck]:
    """Yield the memory of each service, in MiB; a missing value violates its limit."""
    for name, limit in MEMORY_LIMITS.items():
        peak = peaks_by_service.get(name)
        value = None if peak is None else round(peak / _MIB, 1)
        yield at_most(f"memory of {name}, MiB", limit / _MIB, value)
