"""Paired and repeated: every way of a row once, then all of them again the other way round."""

from collections.abc import Callable

from lab.suites.bench.rows import Row, Way
from lab.suites.bench.sample import Pair, Sample


def pairs(row: Row, repeats: int, once: Callable[[Way, int], Sample]) -> list[Pair]:
    """`once(way, repeat)` of every way, `repeats` times, each in the opposite order of the last.

    So what drifts while a row is measured (the clock, the neighbours, what the disk has kept) is as
    often for a way as against it.
    """
    found = []
    for repeat in range(repeats):
        order = row.ways if repeat % 2 == 0 else row.ways[::-1]
        found.append({way.name: once(way, repeat) for way in order})
    return found
