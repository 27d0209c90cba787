"""The lab's results against the reference values. docs/calibration.md explains the limits."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Literal

from load_lab.calibrate.cells import Cell, CheckKind
from load_lab.calibrate.known_server import ReferenceValues
from load_lab.calibrate.noise import Noise
from load_lab.machine.noise import UNSTEADY_RATIO
from load_lab.results.result import METRICS, Result

# Noise adds some milliseconds; a value that is more than twice the expected one is wrong.
MAX_NOISE = 1.0


Outcome = Literal["held", "missed", "void"]


@dataclass(frozen=True)
class Check:
    """A comparison of `found` with `expected`. `allowed` is the maximum deviation: as a share of
    `expected` or, with `factor`, as a ratio. Texts and counts must be equal (`allowed` is 0).
    `allowed_above` is a larger maximum upwards, for values to which something can only be added.
    """

    what: str
    expected: float | str
    found: float | str | None
    allowed: float = 0.0
    unit: str = ""
    factor: bool = False
    allowed_above: float = 0.0
    # Why a miss is not valid, unless the value is missing or of another magnitude.
    void: str = ""

    @property
    def deviation(self) -> float | None:
        """Return the deviation, in the form of `allowed`; None if there is nothing to compare."""
        if not isinstance(self.expected, int | float) or not isinstance(self.found, int | float):
            return None
        if self.factor:
            return _factor(self.found, self.expected)
        return self.found / self.expected - 1 if self.expected else float(self.found)

    @property
    def outcome(self) -> Outcome:
        if self._is_within_limit():
            return "held"
        return "void" if self.void and self._is_small() else "missed"

    def _is_small(self) -> bool:
        return self.deviation is not None and abs(self.deviation) <= MAX_NOISE

    def _is_within_limit(self) -> bool:
        if not self.allowed:
            return self.expected == self.found
        if self.deviation is None:
            return False
        return -self.allowed <= self.deviation <= max(self.allowed, self.allowed_above)


def _factor(found: float, expected: float) -> float:
    """Return the ratio of the larger to the smaller value; infinite if one is 0."""
    lower, higher = sorted((found, expected))
    return higher / lower if lower > 0 else math.inf


TIMES, RATES, BREAK, SPREAD = 0.02, 0.01, 0.05, 0.05
# k6 sets this growth factor for the buckets of its native histograms.
BUCKET = 1.1
SHARES = (50, 90, 95, 99)
# Time in ms that k6 may add to a percentile: while it starts a request, pushes metrics or collects
# garbage, it reads no responses.
OWN_WORK_MS = {50: 0.6, 90: 1.0, 95: 2.0, 99: 5.0}


@dataclass(frozen=True)
class Measurement:
    """One run: the `result` as reported by the lab, the `reference` values, the loopback's
    share of the response times, and Prometheus's values: percentiles in ms by share, and the load's
    requests. It is the quietest of `tries` runs. `buckets_off`: in how many buckets the merged
    histogram of several generators differs from their samples.
    """

    result: Result
    reference: ReferenceValues
    floor_ms: float
    prometheus_ms: dict[int, float | None]
    prometheus_requests: float | None
    noise: Noise = field(default_factory=lambda: Noise(0, 0, None))
    tries: int = 1
    buckets_off: int | None = None


def compare(cell: Cell, runs: list[Measurement]) -> list[Check]:
    """Return every check of a cell, for each of its runs."""
    checks: list[Check] = []
    for kind in cell.checks:
        if kind == "spread":
            checks += _spread(runs)
        else:
            checks += [check for measurement in runs for check in _CHECKS[kind](cell, measurement)]
    return checks


def _times(_cell: Cell, measurement: Measurement) -> Iterator[Check]:
    for share in SHARES:
        expected = round(measurement.reference.milliseconds(share) + measurement.floor_ms, 2)
        value = METRICS[f"p{share}_ms"].of(measurement.result)
        # Noise of the machine alone never delays half of the requests.
        void = measurement.noise.void_reason if share > SHARES[0] else ""
        overhead_share = round(OWN_WORK_MS[share] / expected, 3) if expected else 0.0
        what = f"k6's p{share}"
        yield Check(what, expected, value, TIMES, " ms", allowed_above=overhead_share, void=void)
    for share in SHARES:
        value, raw_ms = (
            METRICS[f"p{share}_ms"].of(measurement.result),
            measurement.prometheus_ms[share],
        )
        prometheus_ms = None if raw_ms is None else round(raw_ms, 2)
        yield Check(
            f"Prometheus's p{share}", value or 0.0, prometheus_ms, BUCKET, " ms", factor=True
        )


def _rate(cell: Cell, measurement: Measurement) -> Iterator[Check]:
    expected = round(measurement.reference.rate, 2)
    yield Check("requests per second", expected, measurement.result.rps, RATES, "/s")
    if cell.rate:
        best = measurement.reference.best_rate or 0.0
        yield Check("goodput, best 5 s", best, measurement.result.goodput, RATES, "/s")


def _counts(_cell: Cell, measurement: Measurement) -> Iterator[Check]:
    answered, cut_off = measurement.reference.requests, measurement.reference.cut_off
    yield Check("requests in k6's summary", answered + cut_off, measurement.result.requests)
    yield Check("requests in Prometheus", answered + cut_off, measurement.prometheus_requests)
    yield Check("failed requests", cut_off, measurement.result.failed)
    if measurement.buckets_off is not None:
        yield Check("buckets that differ from all samples", 0, measurement.buckets_off)


def _break(cell: Cell, measurement: Measurement) -> Iterator[Check]:
    point = measurement.result.break_point
    expected = float(cell.breaks_at or 0)
    yield Check("break point", expected, point.rate if point else None, BREAK, "/s")
    yield Check("goodput at the break", expected, point.goodput if point else None, BREAK, "/s")


def _limit(cell: Cell, measurement: Measurement) -> Iterator[Check]:
    yield Check("limited by", cell.limit, measurement.result.limited_by)


def _spread(runs: list[Measurement]) -> Iterator[Check]:
    """Yield the variation of the repeats, and the variation at a constant CPU speed: corrected by
    the CPU time of one response, whose work is constant. Only the former includes the machine's
    variation.
    """
    goodputs = [measurement.result.goodput for measurement in runs]
    works = [measurement.reference.work_ms for measurement in runs]
    noise = [reason for measurement in runs for reason in measurement.noise.reasons]
    void = "; ".join(dict.fromkeys([*noise, *_uneven(works)]))
    what = f"goodput of {len(runs)}: coefficient of variation"
    yield Check(what, 0.0, variation(goodputs), SPREAD, void=void)
    corrected_variation = variation(
        [each * work for each, work in zip(goodputs, works, strict=True)]
    )
    yield Check(
        f"{what}, at one speed",
        0.0,
        corrected_variation,
        SPREAD,
        void="; ".join(dict.fromkeys(noise)),
    )


def _uneven(works: list[float]) -> Iterator[str]:
    shortest, longest = min(works), max(works)
    if shortest and longest / shortest >= UNSTEADY_RATIO:
        yield (
            f"the same work took {shortest:.1f} ms of the CPU in one run and {longest:.1f} in "
            "another"
        )


def variation(values: list[float]) -> float | None:
    """Return the coefficient of variation, as a share; None for fewer than two values."""
    if len(values) < 2 or not fmean(values):
        return None
    return round(stdev(values) / fmean(values), 4)


_CHECKS: dict[CheckKind, Callable[[Cell, Measurement], Iterator[Check]]] = {
    "times": _times,
    "rate": _rate,
    "counts": _counts,
    "break": _break,
    "limit": _limit,
}
