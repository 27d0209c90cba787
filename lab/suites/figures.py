"""A figure beside its bound, as overloads and soaks have them."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from lab.analysis.prometheus import Prometheus
from lab.analysis.windows import PUSH_SECONDS, Bounds

# What arrives just before the end of an overload is due a bound and a push later
# (lab/analysis/windows.py): no window that begins before then can be a good one.
SOONEST_SECONDS = Bounds().p95_ms / 1000 + PUSH_SECONDS


@dataclass(frozen=True)
class Figure:
    """`value` is None when it was not seen, which keeps no bound."""

    what: str
    bound: float
    at_most: bool
    value: float | None

    @property
    def kept(self) -> bool:
        """Whether the bound was kept."""
        if self.value is None:
            return False
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "kept": self.kept}


def at_most(what: str, bound: float, value: float | None) -> Figure:
    return Figure(what, bound, True, value)


def at_least(what: str, bound: float, value: float | None) -> Figure:
    return Figure(what, bound, False, value)


_MIB = 1024**2
# docker-compose.yml's own (a test compares them). Plain processes have no limit, and are held to
# the same ones.
LIMITS = {
    "postgres": 1024 * _MIB,
    "redis": 384 * _MIB,
    "backend": 1024 * _MIB,
    "nginx": 1536 * _MIB,
}


def peaks(prometheus: Prometheus, start: float, end: float, step: float = 1) -> dict[str, int]:
    """The most bytes that each service of the target took between two Unix times."""
    # Between two steps, too; the rule is evaluated each 5 s.
    query = f"max_over_time(service:memory_bytes[{max(10, ceil(step))}s])"
    found = prometheus.by_label(query, "service", start, end, step)
    return {
        name: round(max(series.values()))
        for name, series in sorted(found.items())
        if name in LIMITS and series
    }


def within_limits(found: dict[str, int]) -> Iterator[Figure]:
    """A figure for each service, in MiB; one that was not seen keeps no bound."""
    for name, limit in LIMITS.items():
        taken = found.get(name)
        value = None if taken is None else round(taken / _MIB, 1)
        yield at_most(f"memory of {name}, MiB", limit / _MIB, value)
