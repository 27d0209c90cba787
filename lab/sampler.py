"""How busy the CPUs were, second by second, while the load ran."""

import threading
import time
from dataclasses import dataclass
from types import TracebackType

import psutil

from lab.cpus import choose_cpus, expand
from lab.settings import Settings

_STEP_SECONDS = 1.0


@dataclass(frozen=True)
class CpuUse:
    """Busy share (0 to 1) of the target's and the generator's CPUs in the second before `at`."""

    at: float
    target: float
    load: float


class CpuSampler:
    """Samples in a thread of its own between `with` and its end."""

    def __init__(self, settings: Settings) -> None:
        cpus = choose_cpus(settings)
        self._sides = (expand(cpus.target), expand(cpus.load))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.uses: list[CpuUse] = []

    def __enter__(self) -> "CpuSampler":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        # The first call only sets the mark, which psutil keeps per thread.
        psutil.cpu_percent(percpu=True)
        while not self._stop.wait(_STEP_SECONDS):
            busy = psutil.cpu_percent(percpu=True)
            target, load = (sum(busy[i] for i in side) / len(side) / 100 for side in self._sides)
            self.uses.append(CpuUse(time.time(), target, load))


def busy_between(uses: list[CpuUse], start: float, end: float) -> CpuUse | None:
    """The mean over a time span; None when nothing was sampled in it."""
    inside = [use for use in uses if start <= use.at <= end + _STEP_SECONDS]
    if not inside:
        return None
    count = len(inside)
    return CpuUse(end, sum(u.target for u in inside) / count, sum(u.load for u in inside) / count)
