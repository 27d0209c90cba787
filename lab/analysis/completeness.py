"""Whether Prometheus has what k6 counted: while it is down, k6 goes on and pushes into nothing."""

import time
from dataclasses import dataclass
from itertools import pairwise

from lab.analysis import queries
from lab.analysis.prometheus import Prometheus, Unanswered

# k6 pushes every second; fewer missing pushes in a row can't look like a break (IN_A_ROW windows).
_LONGEST_SILENCE_SECONDS = 3

# With a write-ahead log in front of Prometheus, the last pushes arrive late. Waited for as long as
# more arrives, and at most so long.
_QUIET_SECONDS = 3
_PATIENCE_SECONDS = 10
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Completeness:
    """Requests, setup's included: as k6 counted them, and as Prometheus has them.

    `prometheus` is None when it does not answer. `seconds_missing` are those of the load's
    `seconds` in which nothing of the run reached it.
    """

    k6: int
    prometheus: int | None
    seconds: float
    seconds_missing: float

    @property
    def readable(self) -> bool:
        """Whether the run's course can be read back, second by second."""
        return self.prometheus is not None and not self.seconds_missing

    @property
    def complete(self) -> bool:
        return self.readable and self.prometheus == self.k6

    @property
    def text(self) -> str:
        """What there is, or what is lacking."""
        if self.prometheus is None:
            return f"Prometheus does not answer; k6 counted {self.k6} requests, setup's included"
        of_requests = f"Prometheus has {self.prometheus} of {self.k6} requests, setup's included"
        if not self.seconds_missing:
            return of_requests
        return f"{of_requests}, and lacks {self.seconds_missing:.0f} of {self.seconds:.0f} s"


def measure_completeness(
    testid: str, counted: int, started: float, seconds: float, prometheus: Prometheus
) -> Completeness:
    """What of a load of `seconds` is in Prometheus; waits some seconds for what is on its way."""

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
    except Unanswered:
        return Completeness(counted, None, seconds, seconds)
    moments = sorted(at for series in beats for at in series)
    silent = silence_seconds(moments, started, started + seconds)
    return Completeness(counted, int(there), seconds, silent)


def silence_seconds(moments: list[float], start: float, end: float) -> float:
    """Seconds in which a push was due and none came; `moments` are the pushes', in order."""
    # A push holds the second before it.
    silences = (after - before for before, after in pairwise([start - 1, *moments, end]))
    return sum(silence - 1 for silence in silences if silence > _LONGEST_SILENCE_SECONDS)
