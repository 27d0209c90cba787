"""Measure how fast the machine currently computes, with a constant piece of work."""

import time
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import psutil

from load_lab.machine.cpus import bind

# From this ratio on, cells differ as much by the machine as by what is compared.
UNSTEADY_RATIO = 1.15
_TURNS = 100_000
# Speed of the idle machine on which the durations of cells were measured, in million turns/s.
_REFERENCE_SPEED = 15.0


@dataclass(frozen=True)
class Extremes:
    """The lowest and the highest of several speeds, each with its name."""

    lowest: float
    highest: float
    slowest: str
    fastest: str

    @property
    def ratio(self) -> float:
        return self.highest / self.lowest


def cpu_speed(cpus: Iterable[int], seconds: float = 0.5) -> float:
    """Return the turns of a Python loop per second of CPU time on `cpus`, in millions.

    CPU time excludes what other programs use. It includes what slows the CPUs down: a lower clock,
    and neighbours on the same core or the same caches.
    """
    # In a separate thread, because a thread stays pinned to its CPUs.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_measure, set(cpus), seconds).result()


def slowness(cpus: Iterable[int], seconds: float = 1.0) -> float:
    """Return how many times as long as on the reference machine work takes on `cpus` now.

    By the clock, so it includes what other programs use.
    """
    with ThreadPoolExecutor(1) as pool:
        return _REFERENCE_SPEED / pool.submit(_measure_by_clock, set(cpus), seconds).result()


def extremes(speeds: Iterable[tuple[float | None, str]]) -> Extremes | None:
    """Return the slowest and the fastest of (speed, name); None without values."""
    values = [(speed, name) for speed, name in speeds if speed]
    if not values:
        return None
    (lowest, slowest), (highest, fastest) = min(values), max(values)
    return Extremes(lowest, highest, slowest, fastest)


def _measure(cpus: set[int], seconds: float) -> float:
    bind(cpus)
    ends, rates = time.monotonic() + seconds, list[float]()
    while not rates or time.monotonic() < ends:
        rates.append(_TURNS / _cpu_seconds() / 1e6)
    return fmean(rates)


def _measure_by_clock(cpus: set[int], seconds: float) -> float:
    bind(cpus)
    started, turns = time.monotonic(), 0
    while (elapsed := time.monotonic() - started) < seconds or not turns:
        _cpu_seconds()
        turns += _TURNS
    return turns / elapsed / 1e6


def _cpu_seconds() -> float:
    started = time.thread_time()
    sum(i * i for i in range(_TURNS))
    return time.thread_time() - started


# From this share on, a result depends on the machine's neighbours.
NOISY_SHARE = 0.05


class StealMeter:
    """The share (0 to 1) of CPU time that was stolen since the last call, for all CPUs or for
    `cpus`.

    Linux guests only; elsewhere 0. The kernel counts CPU time as stolen only while the CPU had
    work.
    """

    def __init__(self, cpus: Collection[int] | None = None) -> None:
        self._cpus = cpus
        self._before = _steal_times(cpus)

    def share(self) -> float:
        before, self._before = self._before, _steal_times(self._cpus)
        stolen, total = (now - earlier for now, earlier in zip(self._before, before, strict=True))
        return stolen / total if total > 0 else 0.0


def mean_share(shares: Iterable[float]) -> float:
    """Return the mean of a run's seconds; 0 without values."""
    values = list(shares)
    return round(sum(values) / len(values), 4) if values else 0.0


def _steal_times(cpus: Collection[int] | None) -> tuple[float, float]:
    """Return the stolen and the total seconds of those CPUs so far."""
    if cpus is None:
        return _stolen_and_total(psutil.cpu_times())
    times = psutil.cpu_times(percpu=True)
    stolen, total = zip(*(_stolen_and_total(times[cpu]) for cpu in cpus), strict=True)
    return sum(stolen), sum(total)


def _stolen_and_total(times: Any) -> tuple[float, float]:
    # The time of nested guests is already included in user and nice.
    values = [value for name, value in times._asdict().items() if not name.startswith("guest")]
    return getattr(times, "steal", 0.0), sum(values)
