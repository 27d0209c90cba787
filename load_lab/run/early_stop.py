"""Decide whether a ramp may stop while k6 still runs: after its break, or once the load generator
is the limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from load_lab.errors import LabError
from load_lab.machine.control_groups import MUCH_THROTTLED
from load_lab.machine.cpu_use import CpuUse
from load_lab.metrics.plan import Plan
from load_lab.metrics.windows import STEP_SECONDS, WINDOW_SECONDS, Bounds, Window, windows
from load_lab.results.breakpoint import BREAK_WINDOWS, MIN_SECONDS, is_past_break
from load_lab.results.verdict import GENERATOR_FULL
from load_lab.run.running import RunningLoad

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
    _windows: list[Window] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._load = RunningLoad(self.testid, self.prometheus_url, self.generators)

    def __call__(self, plan: Plan, cpu: list[CpuUse]) -> bool:
        if self._load.started and generator_is_full(cpu, self._load.started):
            return True
        try:
            return is_past_break(self._complete_windows(plan))
        except LabError:
            return False

    def _complete_windows(self, plan: Plan) -> list[Window]:
        """Return the windows for which every push has arrived; none after an outage."""
        seconds = self._load.recorded_seconds()
        if seconds < MIN_SECONDS:
            return []
        known = self._windows[-1].end if self._windows else 0.0
        totals = self._load.totals(seconds)
        self._windows += windows(plan.until(seconds), totals.at, self.bounds, after=known)
        return self._windows


def generator_is_full(cpu: list[CpuUse], started: float) -> bool:
    """Return whether the generator's CPUs, or its quota, were used up in each of the last seconds
    of the load, which began at `started` (Unix time).
    """
    last = [use for use in cpu if use.at > started + STEP_SECONDS][-_FULL_SECONDS:]
    return len(last) == _FULL_SECONDS and all(
        use.load >= GENERATOR_FULL or use.throttled > MUCH_THROTTLED for use in last
    )
