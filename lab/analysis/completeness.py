"""Compare k6's request count with Prometheus's: during an outage of Prometheus, k6 continues and
its pushes are lost.
"""

import time
from dataclasses import dataclass
from itertools import pairwise

from lab.analysis import queries
from lab.analysis.prometheus import Prometheus, PrometheusUnavailable

# k6 pushes every second; a shorter gap can't look like a break (BREAK_WINDOWS in a row).
_LONGEST_SILENCE_SECONDS = 3

# With a write-ahead log in front of Prometheus, the last pushes arrive late. Polling ends when
# nothing arrives for _QUIET_SECONDS, at the latest after _PATIENCE_SECONDS.
_QUIET_SECONDS = 3
_PATIENCE_SECONDS = 10
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Completeness:
    """Requests, setup's included, as counted by k6 and as stored in Prometheus.

    `prometheus` is None when Prometheus does not respond. `seconds_missing` is the part of the
    load's `seconds` without any push in Prometheus.
    """

    k6: int
    prometheus: int | None
    seconds: float
    seconds_missing: float

    @property
    def readable(self) -> bool:
        """Return whether Prometheus has data for every second of the run."""
        return self.prometheus is not None and not self.seconds_missing

    @property
    def complete(self) -> bool:
        return self.readable and self.prometheus == self.k6

    @property
    def text(self) -> str:
        """Describe what Prometheus has, or what is missing."""
        if self.prometheus is None:
            return f"Prometheus does not answer; k6 counted {self.k6} requests, setup's included"
        of_requests = f"Prometheus has {self.prometheus} of {self.k6} requests, setup's included"
        if not self.seconds_missing:
            return of_requests
        return f"{of_requests}, and lacks {self.seconds_missing:.0f} of {self.seconds:.0f} s"


def measure_completeness(
    testid: str, counted: int, started: float, seconds: float, prometheus: Prometheus
) -> Completeness:
    """Return the completeness of a load of `seconds`; wait some seconds for late pushes."""

    def look() -> Completeness:
        return _look(testid, counted, started, seconds, prometheus)

    began = changed = time.monotonic()
    found = look()
    while not found.complete and _still_hopes(began, changed):
        time.sleep(_POLL_SECONDS)
        before, found = found, look()
        if found != before:
            changed = time.monotonic()
    return found


def _still_hopes(began: float, changed: float) -> bool:
    now = time.monotonic()
    return now < min(changed + _QUIET_SECONDS, began + _PATIENCE_SECONDS)


def _look(
    testid: str, counted: int, started: float, seconds: float, prometheus: Prometheus
) -> Completeness:
    try:
        there = prometheus.instant(queries.requests_of_whole_run(testid)) or 0
        beats = prometheus.samples(queries.heartbeat(testid), started, started + seconds)
    except PrometheusUnavailable:
        return Completeness(counted, None, seconds, seconds)
    moments = sorted(at for series in beats for at in series)
    silent = gap_seconds(moments, started, started + seconds)
    return Completeness(counted, int(there), seconds, silent)


def gap_seconds(moments: list[float], start: float, end: float) -> float:
    """Return the seconds in which a push was due and none arrived; `moments` are the sorted push
    times.
    """
    # A push covers the second before it.
    silences = (after - before for before, after in pairwise([start - 1, *moments, end]))
    return sum(silence - 1 for silence in silences if silence > _LONGEST_SILENCE_SECONDS)
