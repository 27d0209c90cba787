"""Decide whether a ramp may stop while k6 still runs: after its break, or once the load generator
is the limit.
"""

import time
from dataclasses import dataclass, field

from lab.analysis import queries
from lab.analysis.breakpoint import BREAK_WINDOWS, MIN_SECONDS, is_past_break
from lab.analysis.completeness import gap_seconds
from lab.analysis.measure import read_totals
from lab.analysis.prometheus import Prometheus
from lab.analysis.verdict import GENERATOR_FULL
from lab.analysis.windows import (
    PUSH_SECONDS,
    STEP_SECONDS,
    WINDOW_SECONDS,
    Bounds,
    Window,
    windows,
)
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
    _started: float | None = field(default=None, init=False)

    def __call__(self, plan: Plan, cpu: list[CpuUse]) -> bool:
        if self._started and generator_is_full(cpu, self._started):
            return True
        try:
            return is_past_break(self._windows(plan))
        except LabError:
            return False

    def _windows(self, plan: Plan) -> list[Window]:
        """Return the windows for which every push has arrived; none after an outage."""
        prometheus = Prometheus(self.prometheus_url, _TIMEOUT_SECONDS)
        # k6 pushes this gauge once, and Prometheus returns it for only five minutes.
        self._started = self._started or prometheus.instant(queries.start(self.testid))
        if self._started is None:
            return []
        pushes = self._pushes(prometheus, self._started)
        seconds = max(pushes, default=0.0) - self._started - PUSH_SECONDS
        if seconds < MIN_SECONDS or gap_seconds(pushes, self._started, max(pushes)):
            return []
        totals = read_totals(self.testid, self._started, seconds, prometheus)
        return windows(plan.until(seconds), totals.at, self.bounds)

    def _pushes(self, prometheus: Prometheus, started: float) -> list[float]:
        """Return the times of k6's pushes since the load began (Unix time), in order."""
        heartbeats = prometheus.samples(queries.heartbeat(self.testid), started, time.time())
        return sorted(at for series in heartbeats for at in series)


def generator_is_full(cpu: list[CpuUse], started: float) -> bool:
    """Return whether the generator's CPUs were full in each of the last seconds of the load, which
    began at `started` (Unix time).
    """
    last = [use.load for use in cpu if use.at > started + STEP_SECONDS][-_FULL_SECONDS:]
    return len(last) == _FULL_SECONDS and min(last) >= GENERATOR_FULL
