"""A load in time, second by second, and the SLO by which it is judged. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import linear_regression, variance

from load_lab.metrics.counters import PUSH_SECONDS, Histogram
from load_lab.metrics.plan import Plan
from load_lab.metrics.windows import Totals

# An SLO on p95 allows this share of late responses.
LATE_SHARE = 0.05


@dataclass(frozen=True)
class Slo:
    """The limits of a service-level objective; `p95_seconds` limits 95 % of the responses."""

    p95_seconds: float
    max_errors: float = 0.01


@dataclass(frozen=True)
class Second:
    """What happened in one second of a load: counts of requests.

    `late` responses took longer than the SLO's limit, `failed` ones had an error.
    `response_seconds` is the sum of the response times. At the end of the second, `in_flight`
    requests had no response yet, `overdue` of them for longer than the limit, at least.
    """

    arrived: float
    answered: float
    late: float
    failed: float
    response_seconds: float
    in_flight: float
    overdue: float


def timeline_of(totals: Totals, plan: Plan, seconds: float, slo: Slo) -> list[Second]:
    """Return the complete seconds of a load that sends requests by `plan`."""
    moments = [_Moment.of(totals, plan, at, slo) for at in range(int(seconds) + 1)]
    times = [
        _sum(totals.durations.between(totals.started + at, totals.started + at + 1))
        for at in range(int(seconds))
    ]
    return [
        Second(
            arrived=after.arrived - before.arrived,
            answered=after.answered - before.answered,
            late=max(after.late - before.late, 0.0),
            failed=after.failed - before.failed,
            response_seconds=response_seconds,
            in_flight=max(after.arrived - after.answered, 0.0),
            overdue=max(after.due - after.answered, 0.0),
        )
        for (before, after), response_seconds in zip(pairwise(moments), times, strict=True)
    ]


@dataclass(frozen=True)
class _Moment:
    """Running totals; `due` are the requests that arrived one limit and one push earlier."""

    arrived: float
    due: float
    answered: float
    late: float
    failed: float

    @classmethod
    def of(cls, totals: Totals, plan: Plan, at: float, slo: Slo) -> "_Moment":
        counters = totals.at(at)
        sent = plan.arrivals(at) - counters.dropped
        due = plan.arrivals(at - slo.p95_seconds - PUSH_SECONDS) - counters.dropped
        return cls(
            arrived=sent,
            due=due,
            answered=counters.answers,
            late=counters.answers - counters.errors - counters.in_time,
            failed=counters.errors,
        )


def _sum(histogram: Histogram) -> float:
    """Return the sum of the observations, each in the middle of its bucket."""
    return sum((lower + upper) / 2 * count for (lower, upper), count in histogram.items())


@dataclass(frozen=True)
class Growth:
    """How the response time changes during a load: its slope in seconds per second, the standard
    error of the slope, and its mean over the last seconds.
    """

    slope: float
    error: float
    level: float


_LEVEL_SECONDS = 3
# With fewer points, a slope has no error to compare it with.
_MIN_POINTS = 4
_MAX_AUTOCORRELATION = 0.9


def growth(seconds: Sequence[Second]) -> Growth:
    """Return the growth of the mean response time, by least squares over the seconds.

    Means of neighbouring seconds depend on each other, since a queue carries over: the error is
    widened by their autocorrelation, as for a first-order autoregression.
    """
    points = [
        (at, second.response_seconds / second.answered)
        for at, second in enumerate(seconds)
        if second.answered > 0
    ]
    if len(points) < _MIN_POINTS:
        return Growth(0.0, math.inf, points[-1][1] if points else 0.0)
    times, means = zip(*points, strict=True)
    slope, intercept = linear_regression(times, means)
    residuals = [y - intercept - slope * x for x, y in points]
    squares = sum(r * r for r in residuals)
    products = sum(a * b for a, b in pairwise(residuals))
    rho = min(max(products / squares, 0.0), _MAX_AUTOCORRELATION) if squares > 0 else 0.0
    spread = variance(times) * (len(points) - 1)
    error = math.sqrt(squares / (len(points) - 2) / spread * (1 + rho) / (1 - rho))
    last = points[-_LEVEL_SECONDS:]
    return Growth(slope, error, sum(y for _, y in last) / len(last))
