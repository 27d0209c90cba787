"""How fast the machine computes just now, by a piece of work that is always the same."""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import fmean

from lab.host.cpus import bind

# From here on cells differ by the machine as much as by what is compared.
UNSTEADY_RATIO = 1.15
_TURNS = 100_000


@dataclass(frozen=True)
class Extremes:
    """The least and the most of several speeds, with the names of what had them."""

    least: float
    most: float
    slowest: str
    fastest: str

    @property
    def ratio(self) -> float:
        return self.most / self.least


def cpu_speed(cpus: Iterable[int], seconds: float = 0.5) -> float:
    """Millions of turns of a Python loop per second of CPU time on `cpus`.

    By CPU time, so that what another program uses of them does not count. What slows them down
    does: a lower clock, and neighbours on the same core or the same caches.
    """
    # A thread of its own, since a thread keeps the CPUs that it is bound to.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_measure, set(cpus), seconds).result()


def extremes(speeds: Iterable[tuple[float | None, str]]) -> Extremes | None:
    """The slowest and the fastest of (speed, name); None when nothing was measured."""
    known = [(speed, name) for speed, name in speeds if speed]
    if not known:
        return None
    (least, slowest), (most, fastest) = min(known), max(known)
    return Extremes(least, most, slowest, fastest)


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
