"""Compare k6's request count with Prometheus's: during an outage of Prometheus, k6 continues and
its pushes are lost.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from load_lab.load.summary import GeneratorPart
from load_lab.metrics import queries
from load_lab.metrics.counters import Labels, Series
from load_lab.metrics.prometheus import Prometheus, PrometheusUnavailable

# k6 pushes every second; a shorter gap can't look like a break (BREAK_WINDOWS in a row).
_MAX_GAP_SECONDS = 3

# A generator that starts later than this after the first one is too late: on a ramp, its share
# would look like a shortfall.
_MAX_SKEW_SECONDS = 0.5

# In a window of 5 s, a smaller jump changes the rate by less than 2 %: too little for a break.
_MAX_CLOCK_JUMP_SECONDS = 0.1

# With a write-ahead log in front of Prometheus, the last pushes arrive late. Polling ends when
# nothing arrives for _QUIET_SECONDS, at the latest after _TIMEOUT_SECONDS.
_QUIET_SECONDS = 3
_TIMEOUT_SECONDS = 10
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class GeneratorFault:
    """One of several generators that did not send its share of the load in time; `since` and
    `seconds` are in seconds, `since` the load's start.
    """

    name: str
    fault: Literal["ended", "silent", "late"]
    since: float
    seconds: float

    @property
    def text(self) -> str:
        name, since, seconds = f"generator {self.name}", self.since, self.seconds
        if self.fault == "late":
            return f"{name} began {seconds:.1f} s after the others"
        if self.fault == "ended":
            return f"{name} ended after {since:.0f} s, before the load did"
        return f"{name} sent nothing for {seconds:.0f} s, from {since:.0f} s on"


@dataclass(frozen=True)
class Completeness:
    """Requests, setup's included, as counted by k6 and as stored in Prometheus.

    `prometheus` is None when Prometheus does not respond. `seconds_missing` is the part of the
    load's `seconds` without any push in Prometheus, which begins `missing_from` seconds into it
    (None where that is not known). `clock_jump`: by how many seconds the machine's clock was set
    forward during the run, negative if back; then no sample's time is certain.
    """

    k6: int
    prometheus: int | None
    seconds: float
    seconds_missing: float
    missing_from: float | None = None
    clock_jump: float = 0.0
    generators: int = 1
    faults: tuple[GeneratorFault, ...] = field(default=())

    @property
    def readable(self) -> bool:
        """Return whether Prometheus has data for every second of the run, with correct times, and
        every generator sent its share.
        """
        return self.readable_until == math.inf

    @property
    def readable_until(self) -> float:
        """Return the seconds into the run until which that is so: infinite for all of it."""
        if self.prometheus is None or self._clock_was_set or self.faults:
            return 0.0
        return (self.missing_from or 0.0) if self.seconds_missing else math.inf

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
        if self.faults:
            share = len({fault.name for fault in self.faults}) / self.generators
            faults = ", ".join(fault.text for fault in self.faults)
            return f"{faults}, so up to {share:.0%} of the load was missing"
        of_requests = f"Prometheus has {self.prometheus} of {self.k6} requests, setup's included"
        if not self.seconds_missing:
            return of_requests
        since = f", from {self.missing_from:.0f} s on" if self.missing_from else ""
        return f"{of_requests}, and lacks {self.seconds_missing:.0f} of {self.seconds:.0f} s{since}"


@dataclass(frozen=True)
class LoadSpan:
    """A load of `seconds` from `started` (Unix time) on: the requests that k6 counted, setup's
    included, and what its generators counted, if there are several. `lost`: names of those that
    failed.
    """

    testid: str
    started: float
    seconds: float
    k6_count: int
    generators: Sequence[GeneratorPart] = ()
    lost: Sequence[str] = ()

    @property
    def ended(self) -> float:
        return self.started + self.seconds


def measure_completeness(load: LoadSpan, prometheus: Prometheus) -> Completeness:
    """Return the completeness of a load; wait some seconds for late pushes."""
    started_at = changed_at = time.monotonic()
    completeness = _query(load, prometheus)
    while not completeness.complete and _should_poll(started_at, changed_at):
        time.sleep(_POLL_SECONDS)
        previous, completeness = completeness, _query(load, prometheus)
        if completeness != previous:
            changed_at = time.monotonic()
    return completeness


def _should_poll(started_at: float, changed_at: float) -> bool:
    now = time.monotonic()
    return now < min(changed_at + _QUIET_SECONDS, started_at + _TIMEOUT_SECONDS)


def _query(load: LoadSpan, prometheus: Prometheus) -> Completeness:
    try:
        run = queries.one_run(load.testid)
        count = prometheus.instant(queries.requests(run)) or 0
        heartbeats = prometheus.samples(queries.heartbeat(run), load.started, load.ended)
    except PrometheusUnavailable:
        return Completeness(load.k6_count, None, load.seconds, load.seconds)
    if load.generators:
        faults = tuple(
            fault
            for part in load.generators
            for fault in _faults(part, load, push_times(heartbeats, part.name))
        )
        generators = len(load.generators)
        return Completeness(
            load.k6_count, int(count), load.seconds, 0, generators=generators, faults=faults
        )
    silences = gaps(push_times(heartbeats, ""), load.started, load.ended)
    missing = sum(seconds for _at, seconds in silences)
    first = max(silences[0][0] - load.started, 0.0) if silences else None
    return Completeness(load.k6_count, int(count), load.seconds, missing, first)


def push_times(heartbeats: Mapping[Labels, Series], generator: str) -> list[float]:
    """Return the sorted times at which a generator pushed; the label of a single one is empty."""
    return sorted(
        at
        for labels, series in heartbeats.items()
        if dict(labels).get(queries.GENERATOR, "") == generator
        for at in series
    )


def _faults(part: GeneratorPart, load: LoadSpan, pushes: list[float]) -> list[GeneratorFault]:
    """Return what was wrong with one of several generators."""
    if part.name in load.lost:
        since = max(pushes, default=load.started) - load.started
        return [GeneratorFault(part.name, "ended", round(since, 1), round(load.seconds - since, 1))]
    started, ended = part.started or load.started, part.ended or load.ended
    faults = [
        GeneratorFault(part.name, "silent", round(max(at - load.started, 0), 1), round(seconds, 1))
        for at, seconds in gaps(pushes, started, ended)
    ]
    skew = started - load.started
    if skew > _MAX_SKEW_SECONDS:
        faults.insert(0, GeneratorFault(part.name, "late", 0.0, round(skew, 1)))
    return faults


def gaps(times: list[float], start: float, end: float) -> list[tuple[float, float]]:
    """Return the times in which a push was due and none arrived, each with its start (Unix time)
    and its seconds; `times` are the sorted push times.
    """
    # A push covers the second before it.
    between = ((before, after - before) for before, after in pairwise([start - 1, *times, end]))
    return [(before, gap - 1) for before, gap in between if gap > _MAX_GAP_SECONDS]
