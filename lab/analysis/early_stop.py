"""Decide whether a ramp may stop while k6 still runs: after its break, or once the load generator
is the limit.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from lab.analysis import queries
from lab.analysis.breakpoint import BREAK_WINDOWS, MIN_SECONDS, is_past_break
from lab.analysis.completeness import gap_seconds, push_times
from lab.analysis.counters import PUSH_SECONDS
from lab.analysis.measure import read_totals
from lab.analysis.prometheus import KnownSamples, Prometheus
from lab.analysis.verdict import GENERATOR_FULL
from lab.analysis.windows import STEP_SECONDS, WINDOW_SECONDS, Bounds, Window, windows
from lab.errors import LabError
from lab.host.sampler import CpuUse
from lab.load.plan import Plan

# Prometheus may hang, and the check runs every second.
_TIMEOUT_SECONDS = 3
# A generator that is full for a break's windows can only show its own limit. If it went on, k6's
# pushes would come seconds late, and the run could not be judged.
_FULL_SECONDS = WINDOW_SECONDS + BREAK_WINDOWS * STEP_SECONDS


@dataclass
class EarlyStop:
    """Called every second of a run with its plan and its CPU use; returns true once the break is
    certain, or the generator has been full for `_FULL_SECONDS`.

    It uses the windows and counters of the result, so both find the same break. A missing push
    would look like a break: after an outage of Prometheus, the ramp runs to its end.
    """

    testid: str
    prometheus_url: str
    bounds: Bounds
    generators: Sequence[str] = ("",)
    _started: float | None = field(default=None, init=False)
    _windows: list[Window] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._prometheus = Prometheus(self.prometheus_url, _TIMEOUT_SECONDS)
        self._samples = KnownSamples(self._prometheus)

    def __call__(self, plan: Plan, cpu: list[CpuUse]) -> bool:
        if self._started and generator_is_full(cpu, self._started):
            return True
        try:
            return is_past_break(self._complete_windows(plan))
        except LabError:
            return False

    def _complete_windows(self, plan: Plan) -> list[Window]:
        """Return the windows for which every push has arrived; none after an outage."""
        # k6 pushes this gauge once, and Prometheus returns it for only five minutes.
        self._started = self._started or self._prometheus.instant(queries.start(self.testid))
        if self._started is None:
            return []
        seconds = self._recorded_seconds(self._started)
        if seconds < MIN_SECONDS:
            return []
        totals = read_totals(self.testid, self._started, seconds, self._samples)
        known = self._windows[-1].end if self._windows else 0.0
        self._windows += windows(plan.until(seconds), totals.at, self.bounds, after=known)
        return self._windows

    def _recorded_seconds(self, started: float) -> float:
        """Return the seconds since the load began for which every generator has pushed; 0 after an
        outage.
        """
        heartbeats = self._samples.samples(queries.heartbeat(self.testid), started, time.time())
        of_each = [push_times(heartbeats, name) for name in self.generators]
        newest = min(max(pushes, default=0.0) for pushes in of_each)
        if any(gap_seconds(pushes, started, newest) for pushes in of_each):
            return 0.0
        return newest - started - PUSH_SECONDS


def generator_is_full(cpu: list[CpuUse], started: float) -> bool:
    """Return whether the generator's CPUs were full in each of the last seconds of the load, which
    began at `started` (Unix time).
    """
    last = [use.load for use in cpu if use.at > started + STEP_SECONDS][-_FULL_SECONDS:]
    return len(last) == _FULL_SECONDS and min(last) >= GENERATOR_FULL
