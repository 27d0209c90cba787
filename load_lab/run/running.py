"""Read a load from Prometheus while k6 still runs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from load_lab.metrics import queries
from load_lab.metrics.counters import PUSH_SECONDS
from load_lab.metrics.prometheus import KnownSamples, Prometheus
from load_lab.metrics.windows import Totals
from load_lab.results.completeness import gaps, push_times
from load_lab.run.measurement import read_totals

# Prometheus may hang, and the load is looked at every second.
_TIMEOUT_SECONDS = 3


@dataclass
class RunningLoad:
    """The counters of the load `testid` so far, of all its generators."""

    testid: str
    prometheus_url: str
    generators: Sequence[str] = ("",)
    started: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._prometheus = Prometheus(self.prometheus_url, _TIMEOUT_SECONDS)
        self._samples = KnownSamples(self._prometheus)

    def recorded_seconds(self) -> float:
        """Return the seconds since the load began for which every generator has pushed; 0 before
        its first push, and after an outage, whose missing pushes would look like a break.

        Raises:
            LabError: Prometheus does not answer.
        """
        # k6 pushes this gauge once, and Prometheus returns it for only five minutes.
        run = queries.one_run(self.testid)
        self.started = self.started or self._prometheus.instant(queries.start(run))
        if self.started is None:
            return 0.0
        heartbeats = self._samples.samples(queries.heartbeat(run), self.started, time.time())
        of_each = [push_times(heartbeats, name) for name in self.generators]
        newest = min(max(pushes, default=0.0) for pushes in of_each)
        if any(gaps(pushes, self.started, newest) for pushes in of_each):
            return 0.0
        return max(newest - self.started - PUSH_SECONDS, 0.0)

    def totals(self, seconds: float) -> Totals:
        """Return the counters of the load's first `seconds`, all of them recorded.

        Raises:
            LabError: Prometheus does not answer.
        """
        return read_totals(self.testid, self.started or 0.0, seconds, self._samples)
