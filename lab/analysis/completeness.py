"""Compare k6's request count with Prometheus's: during an outage of Prometheus, k6 continues and
its pushes are lost.
"""

import time
from dataclasses import dataclass
from itertools import pairwise

from lab.analysis import queries
from lab.analysis.prometheus import Prometheus, PrometheusUnavailable

# k6 pushes every second; a shorter gap can't look like a break (BREAK_WINDOWS in a row).
_MAX_GAP_SECONDS = 3

# In a window of 5 s, a smaller jump changes the rate by less than 2 %: too little for a break.
_MAX_CLOCK_JUMP_SECONDS = 0.1

# With a write-ahead log in front of Prometheus, the last pushes arrive late. Polling ends when
# nothing arrives for _QUIET_SECONDS, at the latest after _TIMEOUT_SECONDS.
_QUIET_SECONDS = 3
_TIMEOUT_SECONDS = 10
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Completeness:
    """Requests, setup's included, as counted by k6 and as stored in Prometheus.

    `prometheus` is None when Prometheus does not respond. `seconds_missing` is the part of the
    load's `seconds` without any push in Prometheus. `clock_jump`: by how many seconds the machine's
    clock was set forward during the run, negative if back; then no sample's time is certain.
    """

    k6: int
    prometheus: int | None
    seconds: float
    seconds_missing: float
    clock_jump: float = 0.0

    @property
    def readable(self) -> bool:
        """Return whether Prometheus has data for every second of the run, with correct times."""
        return self.prometheus is not None and not self.seconds_missing and not self._clock_was_set

    @property
    def _clock_was_set(self) -> bool:
        return abs(self.clock_jump) > _MAX_CLOCK_JUMP_SECONDS

    @property
    def complete(self) -> bool:
        return self.readable and self.prometheus == self.k6

    @property
    def text(self) -> str:
        """Describe what Prometheus has, or what is missing."""
        if self.prometheus is None:
            return f"Prometheus does not answer; k6 counted {self.k6} requests, setup's included"
        if self._clock_was_set:
            direction = "forward" if self.clock_jump > 0 else "back"
            seconds = f"{abs(self.clock_jump):.1f} s"
            return f"the machine's clock was set {direction} by {seconds} during the run"
        of_requests = f"Prometheus has {self.prometheus} of {self.k6} requests, setup's included"
        if not self.seconds_missing:
            return of_requests
        return f"{of_requests}, and lacks {self.seconds_missing:.0f} of {self.seconds:.0f} s"


def measure_completeness(
    testid: str, k6_count: int, started: float, seconds: float, prometheus: Prometheus
) -> Completeness:
    """Return the completeness of a load of `seconds`; wait some seconds for late pushes."""

    def query() -> Completeness:
        return _query(testid, k6_count, started, seconds, prometheus)

    started_at = changed_at = time.monotonic()
    completeness = query()
    while not completeness.complete and _should_poll(started_at, changed_at):
        time.sleep(_POLL_SECONDS)
        previous, completeness = completeness, query()
        if completeness != previous:
            changed_at = time.monotonic()
    return completeness


def _should_poll(started_at: float, changed_at: float) -> bool:
    now = time.monotonic()
    return now < min(changed_at + _QUIET_SECONDS, started_at + _TIMEOUT_SECONDS)


def _query(
    testid: str, k6_count: int, started: float, seconds: float, prometheus: Prometheus
) -> Completeness:
    try:
        count = prometheus.instant(queries.requests_of_whole_run(testid)) or 0
        heartbeats = prometheus.samples(queries.heartbeat(testid), started, started + seconds)
    except PrometheusUnavailable:
        return Completeness(k6_count, None, seconds, seconds)
    times = sorted(at for series in heartbeats for at in series)
    missing = gap_seconds(times, started, started + seconds)
    return Completeness(k6_count, int(count), seconds, missing)


def gap_seconds(times: list[float], start: float, end: float) -> float:
    """Return the seconds in which a push was due and none arrived; `times` are the sorted push
    times.
    """
    # A push covers the second before it.
    gaps = (after - before for before, after in pairwise([start - 1, *times, end]))
    return sum(gap - 1 for gap in gaps if gap > _MAX_GAP_SECONDS)
