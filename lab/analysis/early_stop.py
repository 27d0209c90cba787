"""Decide whether a ramp may stop: its break is detected in Prometheus while k6 still runs."""

import time
from dataclasses import dataclass, field

from lab.analysis import queries
from lab.analysis.breakpoint import MIN_SECONDS, is_past_break
from lab.analysis.completeness import gap_seconds
from lab.analysis.measure import read_totals
from lab.analysis.prometheus import Prometheus
from lab.analysis.windows import PUSH_SECONDS, Bounds, Window, windows
from lab.errors import LabError
from lab.load.plan import Plan

# Prometheus may hang, and the check runs every second.
_TIMEOUT_SECONDS = 3


@dataclass
class EarlyStop:
    """Called every second of a run with its plan; returns true once the break is certain.

    It uses the windows and counters of the result, so both find the same break. A missing push
    would look like a break: after an outage of Prometheus, the ramp runs to its end.
    """

    testid: str
    prometheus_url: str
    bounds: Bounds
    _started: float | None = field(default=None, init=False)

    def __call__(self, plan: Plan) -> bool:
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
