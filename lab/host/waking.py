"""How much longer work takes on a CPU that slept before: its caches are cold then."""

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from statistics import fmean

from lab.host.cpus import bind

# The work reads objects that are spread over more memory than a core's own caches hold.
_HOTELS, _FIELDS, _READ = 20_000, 20, 2_000
_ROUNDS, _PIECES = 4, 20
_PAUSE_SECONDS = 0.012


@cache
def wake_seconds(cpus: frozenset[int]) -> float:
    """Return by how many seconds of CPU time a piece of work of 2 to 4 ms takes longer on `cpus`
    after a pause. It is measured once, in 2 seconds.
    """
    # In a separate thread, because a thread stays pinned to its CPUs.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_measure, cpus).result()


def _measure(cpus: frozenset[int]) -> float:
    bind(set(cpus))
    hotels = [{str(field): object() for field in range(_FIELDS)} for _ in range(_HOTELS)]
    awake, woken = list[float](), list[float]()
    # In turns, since the CPUs' speed wanders.
    for _ in range(_ROUNDS):
        awake += [_cpu_seconds(hotels) for _ in range(_PIECES)]
        woken += [_cpu_seconds(hotels, _PAUSE_SECONDS) for _ in range(_PIECES)]
    return max(fmean(woken) - fmean(awake), 0.0)


def _cpu_seconds(hotels: Sequence[dict[str, object]], pause: float = 0.0) -> float:
    time.sleep(pause)
    started = time.thread_time()
    for hotel in random.sample(hotels, _READ):
        str(hotel["3"].__class__.__name__)
    return time.thread_time() - started
