"""Sample CPU utilization and the backend's memory every second under load."""

import threading
import time
from dataclasses import dataclass, field
from statistics import fmean

import psutil

from lab.host.cpus import choose_cpus, expand
from lab.host.noise import StealMeter, cpu_speed
from lab.host.processes import cpu_seconds, server_pids, tree_bytes
from lab.settings import Settings

_STEP_SECONDS = 1.0


@dataclass(frozen=True)
class CpuUse:
    """Utilization (0 to 1) of the target's and the generator's CPUs in the second before `at`.

    `services` has the cores (CPU seconds per second) of each service in that second. `memory_bytes`
    is the memory of the service that answers requests; None where it is not readable. `steal` is
    the share of all CPU time that the hypervisor gave to other guests.
    """

    at: float
    target: float
    load: float
    services: dict[str, float] = field(default_factory=dict)
    memory_bytes: int | None = None
    steal: float = 0.0


class _ServiceMeter:
    """Cores that each service used since the last call."""

    def __init__(self, pids: dict[str, int]) -> None:
        self._pids = pids
        self._at = time.monotonic()
        self._seconds = dict.fromkeys(pids, 0.0)

    def cores(self) -> dict[str, float]:
        now, seconds = time.monotonic(), cpu_seconds(self._pids)
        elapsed = now - self._at
        # A process that ends between two samples reduces the sum.
        used = {name: max(seconds[name] - self._seconds[name], 0) / elapsed for name in seconds}
        self._at, self._seconds = now, seconds
        return used


class CpuSampler:
    """Sample in a background thread inside a `with` block."""

    def __init__(self, settings: Settings, pids: dict[str, int]) -> None:
        self._meter = _ServiceMeter(pids)
        self._server_pids = server_pids(pids)
        cpus = choose_cpus(settings)
        self._sides = (expand(cpus.target), expand(cpus.load))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.uses: list[CpuUse] = []
        self._speeds: list[float] = []

    def __enter__(self) -> "CpuSampler":
        self._speeds.append(cpu_speed(self._sides[0]))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._speeds.append(cpu_speed(self._sides[0]))

    def speed(self) -> float:
        """Return the mean speed of the target's CPUs before and after, see lab/host/noise.py."""
        return round(fmean(self._speeds), 2)

    def _sample(self) -> None:
        # The first call only sets the baseline, which psutil stores per thread.
        psutil.cpu_percent(percpu=True)
        self._meter.cores()
        steal = StealMeter()
        while not self._stop.wait(_STEP_SECONDS):
            busy = psutil.cpu_percent(percpu=True)
            target, load = (sum(busy[i] for i in side) / len(side) / 100 for side in self._sides)
            memory = tree_bytes(self._server_pids)
            cores = self._meter.cores()
            self.uses.append(CpuUse(time.time(), target, load, cores, memory, steal.share()))


def memory_peak(uses: list[CpuUse]) -> int | None:
    """Return the most bytes that the answering service used; None without a sample."""
    return max((use.memory_bytes for use in uses if use.memory_bytes is not None), default=None)


def busy_between(uses: list[CpuUse], start: float, end: float) -> CpuUse | None:
    """Return the mean over a time span; None without a sample in it."""
    span = [use for use in uses if start <= use.at <= end + _STEP_SECONDS]
    if not span:
        return None
    services = {name: fmean(use.services[name] for use in span) for name in span[0].services}
    return CpuUse(end, fmean(use.target for use in span), fmean(use.load for use in span), services)
