"""Measure how fast the machine currently computes, with a constant piece of work."""

import time
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import psutil

from lab.host.cpus import bind

# From this ratio on, cells differ as much by the machine as by what is compared.
UNSTEADY_RATIO = 1.15
_TURNS = 100_000


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


def extremes(speeds: Iterable[tuple[float | None, str]]) -> Extremes | None:
    """Return the slowest and the fastest of (speed, name); None without values."""
    known = [(speed, name) for speed, name in speeds if speed]
    if not known:
        return None
    (lowest, slowest), (highest, fastest) = min(known), max(known)
    return Extremes(lowest, highest, slowest, fastest)


def _measure(cpus: set[int], seconds: float) -> float:
    bind(cpus)
    ends, rates = time.monotonic() + seconds, list[float]()
    while not rates or time.monotonic() < ends:
        rates.append(_TURNS / _cpu_seconds() / 1e6)
    return fmean(rates)


def _cpu_seconds() -> float:
    began = time.thread_time()
    sum(i * i for i in range(_TURNS))
    return time.thread_time() - began


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
        self._before = _times(cpus)

    def share(self) -> float:
        before, self._before = self._before, _times(self._cpus)
        stolen, passed = (now - then for now, then in zip(self._before, before, strict=True))
        return stolen / passed if passed > 0 else 0.0


def mean_share(shares: Iterable[float]) -> float:
    """Return the mean of a run's seconds; 0 without values."""
    known = list(shares)
    return round(sum(known) / len(known), 4) if known else 0.0


def _times(cpus: Collection[int] | None) -> tuple[float, float]:
    """Return the stolen and the total seconds of those CPUs so far."""
    if cpus is None:
        return _counted(psutil.cpu_times())
    each = psutil.cpu_times(percpu=True)
    stolen, passed = zip(*(_counted(each[cpu]) for cpu in cpus), strict=True)
    return sum(stolen), sum(passed)


def _counted(found: Any) -> tuple[float, float]:
    # The time of nested guests is already included in user and nice.
    counted = [value for name, value in found._asdict().items() if not name.startswith("guest")]
    return getattr(found, "steal", 0.0), sum(counted)
