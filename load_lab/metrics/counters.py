"""The pushes of k6's counters and histograms, added up over their series. Pure.

A counter has a series for each name, status and generator.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

# Values by Unix time.
Series = dict[float, float]
Labels = frozenset[tuple[str, str]]

# k6 pushes every second (K6_PROMETHEUS_RW_PUSH_INTERVAL).
PUSH_SECONDS = 1


class Counter:
    """The sum of several series of a counter, such as those of its names and statuses, interpolated
    at any moment; 0 before `start`.

    k6 pushes once a second, each series with the timestamp of its newest sample. Between two
    pushes, the count is between their values. With the last push instead, windows of 5 s would have
    four, five or six pushes: where pushes arrive near a window's edge, a steady rate read a fifth
    too high.
    """

    def __init__(self, series: Iterable[Series], start: float = 0.0) -> None:
        self._series = [sorted(one.items()) for one in series if one]
        self._start = start

    def at(self, when: float) -> float:
        """Return the count at that moment (Unix time)."""
        return sum(_interpolate(one, when, self._start) for one in self._series)


def _interpolate(pushes: list[tuple[float, float]], when: float, start: float) -> float:
    """Interpolate linearly between two pushes; a push covers the second before it."""
    index = bisect_right(pushes, when, key=lambda push: push[0])
    if index == len(pushes):
        return pushes[-1][1]
    at, value = pushes[index]
    before_at, before = pushes[index - 1] if index else (start, 0.0)
    # k6 pushes nothing while it counts nothing; a shorter gap is a late push.
    gap = at - before_at >= 2 * PUSH_SECONDS
    counted_from = at - PUSH_SECONDS if gap else before_at
    if when <= counted_from:
        return before
    return before + (value - before) * (when - counted_from) / (at - counted_from)


# Observations by bucket (lower and upper bound); k6 pushes them cumulated since its start.
Bucket = tuple[float, float]
Histogram = Mapping[Bucket, float]


def parse_histogram(document: Mapping[str, Any]) -> Histogram:
    """Return a histogram of Prometheus's HTTP API."""
    return {
        (float(lower), float(upper)): float(count)
        for _rule, lower, upper, count in document.get("buckets", ())
    }


def add(histograms: Iterable[Histogram]) -> Histogram:
    total: dict[Bucket, float] = {}
    for histogram in histograms:
        for bucket, count in histogram.items():
            total[bucket] = total.get(bucket, 0.0) + count
    return total


def quantile(histogram: Histogram, share: float) -> float | None:
    """Return a quantile, interpolated within its bucket; None without observations. In the bucket
    around 0, that of connections that were refused or reset, it is 0.
    """
    rank = share * sum(histogram.values())
    below = 0.0
    for (lower, upper), count in sorted(histogram.items()):
        if count > 0 and below + count >= rank:
            return lower + (upper - lower) * (rank - below) / count if lower >= 0 else 0.0
        below += count
    return None


def mean(histogram: Histogram) -> float | None:
    """Return the mean, each observation counted as the middle of its bucket."""
    count = sum(histogram.values())
    total = sum(each * (lower + upper) / 2 for (lower, upper), each in histogram.items())
    return total / count if count > 0 else None


class HistogramCounter:
    """The sum of several series of a histogram. Each series is interpolated by itself, as in
    `Counter`: over the sum, `rate()` was off by one to three buckets.
    """

    def __init__(self, series: Iterable[Mapping[float, Histogram]], start: float = 0.0) -> None:
        self._series = list(series)
        buckets = sorted(
            {bucket for one in self._series for each in one.values() for bucket in each}
        )
        self._counters = {
            bucket: Counter(
                [{at: each.get(bucket, 0.0) for at, each in one.items()} for one in self._series],
                start,
            )
            for bucket in buckets
        }

    def between(self, start: float, end: float) -> Histogram:
        """Return the observations between two moments (Unix time)."""
        return {
            bucket: counter.at(end) - counter.at(start)
            for bucket, counter in self._counters.items()
        }

    def total(self) -> Histogram:
        """Return all observations: the last push of each series."""
        return add(one[max(one)] for one in self._series if one)
