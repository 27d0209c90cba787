"""What the reference server says that it did: the truth, as far as a server can know it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from lab.analysis.breakpoint import STEP_SECONDS, highest_rate


@dataclass(frozen=True)
class Truth:
    """Of each request of the load: seconds from its arrival to its answer, and how late its answer
    was by the law. `seconds_in_all` goes from the first arrival to the last answer, `computed` is
    the CPU time in seconds that the law's work took. `best_rate` is the most answers per second in
    any of the lab's windows, which begin with the first arrival.
    """

    seconds: list[float]
    late: list[float]
    seconds_in_all: float
    probes: list[float]
    cut_off: int
    computed: float = 0.0
    best_rate: float | None = None

    @property
    def requests(self) -> int:
        return len(self.seconds)

    @property
    def rate(self) -> float:
        """Requests per second, from the first arrival to the last answer."""
        return self.requests / self.seconds_in_all if self.seconds_in_all else 0.0

    def milliseconds(self, share: float) -> float:
        """A percentile of the server's own times; `share` in percent."""
        return 1000 * percentile(self.seconds, share)

    @property
    def mean_ms(self) -> float:
        return 1000 * sum(self.seconds) / self.requests if self.requests else 0.0

    @property
    def work_ms(self) -> float:
        """CPU time of one answer: of work that is always the same, how slow the CPU was."""
        return 1000 * self.computed / self.requests if self.requests else 0.0

    def late_ms(self, share: float) -> float:
        """A percentile of how late the timer was."""
        return 1000 * percentile(self.late, share)

    def probe_ms(self) -> float:
        return 1000 * median(self.probes) if self.probes else 0.0


def read_truth(record: dict[str, Any]) -> Truth:
    """From what server.py writes."""
    received, due, answered = (record[name] for name in ("received", "due", "answered"))
    return Truth(
        seconds=sorted(end - start for start, end in zip(received, answered, strict=True)),
        late=sorted(end - when for when, end in zip(due, answered, strict=True)),
        seconds_in_all=max(answered) - min(received) if received else 0.0,
        probes=record["probes"],
        cut_off=record["cut_off"],
        computed=record["computed"],
        best_rate=_best_rate(min(received), sorted(answered)) if received else None,
    )


def _best_rate(began: float, answered: list[float]) -> float | None:
    """`answered` sorted. At a constant rate it is more than that rate: answers vary, and what a
    stall held back comes together.
    """
    moments = range(0, round(answered[-1] - began) + 1, STEP_SECONDS)
    return highest_rate([bisect_right(answered, began + moment) for moment in moments])


def percentile(ordered: Sequence[float], share: float) -> float:
    """Of sorted values, between the two nearest as k6 does it; 0 without any.

    https://github.com/grafana/k6/blob/v1.8.1/metrics/sink.go (TrendSink.P)
    """
    if not ordered:
        return 0.0
    place = share / 100 * (len(ordered) - 1)
    below = ordered[int(place)]
    above = ordered[min(int(place) + 1, len(ordered) - 1)]
    return below + (above - below) * (place - int(place))
