"""How a replay's arrivals differ from those that were due; times are in seconds."""

import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise


def gap_errors(due: Sequence[float], sent: Sequence[float]) -> list[float]:
    """Return how much each gap between two arrivals differs from the one that was due."""
    return [abs(a - b) for a, b in zip(_gaps(due), _gaps(sent), strict=True)]


def correlation(due: Sequence[float], sent: Sequence[float]) -> float:
    """Return how the numbers of arrivals in each second of `due` correlate."""
    seconds = range(int(due[-1]) + 1)
    counts = [Counter(int(at) for at in times) for times in (due, sent)]
    return statistics.correlation(*([count[second] for second in seconds] for count in counts))


def _gaps(times: Sequence[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]
