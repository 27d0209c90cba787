"""What each service of the target took, and may take."""

from collections.abc import Iterator
from math import ceil

from lab.analysis.prometheus import Prometheus
from lab.suites.soak.figures import Figure, at_most

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
