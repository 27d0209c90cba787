"""Percentiles of the samples that k6 wrote to CSV files: exact for several generators, too."""

import csv
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import quantiles

from load_lab.metrics.counters import Histogram

_METRIC = "http_req_duration"


def read_samples(files: Iterable[Path], scenario: str) -> list[float]:
    """Return the response times of a load in ms, those of all files together."""
    durations = list[float]()
    for path in files:
        with path.open(newline="") as file:
            durations.extend(
                float(row["metric_value"])
                for row in csv.DictReader(file)
                if row["metric_name"] == _METRIC and row["scenario"] == scenario
            )
    return durations


def percentiles(values: Sequence[float], shares: Iterable[int]) -> dict[int, float]:
    """Return percentiles, interpolated like k6's; nothing without values."""
    if len(values) < 2:
        return dict.fromkeys(shares, values[0]) if values else {}
    hundredths = quantiles(values, n=100, method="inclusive")
    return {share: hundredths[share - 1] for share in shares}


def buckets_off(values: Iterable[float], histogram: Histogram) -> int:
    """Return in how many buckets a histogram (seconds) differs from the samples (ms) that it must
    consist of. A bucket includes its upper bound.
    """
    uppers = sorted(upper for _lower, upper in histogram)
    counted = Counter(bisect_left(uppers, value / 1000) for value in values)
    expected = {uppers.index(upper): count for (_lower, upper), count in histogram.items()}
    return sum(counted[at] != expected.get(at, 0) for at in {*counted, *expected})
