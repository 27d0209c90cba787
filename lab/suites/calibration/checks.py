"""What the lab reported, against what is known. The bounds are explained in docs/calibration.md."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Literal

from lab.analysis.result import METRICS, Result
from lab.host.noise import UNSTEADY_RATIO
from lab.suites.calibration.cells import Cell, Judge
from lab.suites.calibration.noise import Noise
from lab.suites.calibration.reference import Truth

# Noise adds some milliseconds; a figure that is more than twice as much is a wrong one.
MOST_NOISE = 1.0


Outcome = Literal["held", "missed", "void"]


@dataclass(frozen=True)
class Check:
    """`allowed` is how far `found` may be from `expected`: as a share of it, or, with `factor`, how
    many times more or less. Words must be equal, and so must counts: nothing is allowed there.
    `allowed_above` is for what can only be added: how much more it may be, where that is further.
    """

    what: str
    expected: float | str
    found: float | str | None
    allowed: float = 0.0
    unit: str = ""
    factor: bool = False
    allowed_above: float = 0.0
    # What makes a miss say nothing, unless there is no figure, or one of another order.
    void: str = ""

    @property
    def off(self) -> float | None:
        """How far it is, as `allowed` says it; None where there is nothing to compare."""
        if not isinstance(self.expected, int | float) or not isinstance(self.found, int | float):
            return None
        if self.factor:
            return _factor(self.found, self.expected)
        return self.found / self.expected - 1 if self.expected else float(self.found)

    @property
    def outcome(self) -> Outcome:
        if self._holds():
            return "held"
        return "void" if self.void and self._may_be_noise() else "missed"

    def _may_be_noise(self) -> bool:
        return self.off is not None and abs(self.off) <= MOST_NOISE

    def _holds(self) -> bool:
        if not self.allowed:
            return self.expected == self.found
        if self.off is None:
            return False
        return -self.allowed <= self.off <= max(self.allowed, self.allowed_above)


def _factor(found: float, expected: float) -> float:
    """How many times the greater is the less; endless where one is nothing."""
    less, more = sorted((found, expected))
    return more / less if less > 0 else math.inf


TIMES, RATES, BREAK, SPREAD = 0.02, 0.01, 0.05, 0.05
# k6 fixes the growth factor of its native histograms' buckets.
BUCKET = 1.1
SHARES = (50, 90, 95, 99)
# What k6 itself may add to so many of the answers, in ms: while it begins a request, and while it
# pushes or collects its garbage, it reads none.
OWN_WORK_MS = {50: 0.6, 90: 1.0, 95: 2.0, 99: 5.0}


@dataclass(frozen=True)
class Seen:
    """One run: the `result` as the lab reports it, the server's `truth`, what the loopback adds to
    its times, and what Prometheus has: percentiles in ms by share, and the load's requests. It is
    the quietest of so many `tries`.
    """

    result: Result
    truth: Truth
    floor_ms: float
    prometheus_ms: dict[int, float | None]
    prometheus_requests: float | None
    noise: Noise = field(default_factory=lambda: Noise(0, 0, None))
    tries: int = 1


def compare(cell: Cell, runs: list[Seen]) -> list[Check]:
    """Every check of a cell, of each of its runs."""
    found: list[Check] = []
    for judge in cell.judged_by:
        if judge == "spread":
            found += _spread(runs)
        else:
            found += [check for seen in runs for check in _JUDGES[judge](cell, seen)]
    return found


def _times(_cell: Cell, seen: Seen) -> Iterator[Check]:
    for share in SHARES:
        true = round(seen.truth.milliseconds(share) + seen.floor_ms, 2)
        said = METRICS[f"p{share}_ms"].of(seen.result)
        # Half of the requests are never late by the machine alone.
        void = seen.noise.in_times if share > SHARES[0] else ""
        more = round(OWN_WORK_MS[share] / true, 3) if true else 0.0
        what = f"k6's p{share}"
        yield Check(what, true, said, TIMES, " ms", allowed_above=more, void=void)
    for share in SHARES:
        said, there = METRICS[f"p{share}_ms"].of(seen.result), seen.prometheus_ms[share]
        rounded = None if there is None else round(there, 2)
        yield Check(f"Prometheus's p{share}", said or 0.0, rounded, BUCKET, " ms", factor=True)


def _rate(cell: Cell, seen: Seen) -> Iterator[Check]:
    true = round(seen.truth.rate, 2)
    yield Check("requests per second", true, seen.result.rps, RATES, "/s")
    if cell.rate:
        best = seen.truth.best_rate or 0.0
        yield Check("goodput, best 5 s", best, seen.result.goodput, RATES, "/s")


def _counts(_cell: Cell, seen: Seen) -> Iterator[Check]:
    answered, cut_off = seen.truth.requests, seen.truth.cut_off
    yield Check("requests in k6's summary", answered + cut_off, seen.result.requests)
    yield Check("requests in Prometheus", answered + cut_off, seen.prometheus_requests)
    yield Check("failed requests", cut_off, seen.result.failed)


def _break(cell: Cell, seen: Seen) -> Iterator[Check]:
    found = seen.result.break_point
    true = float(cell.breaks_at or 0)
    yield Check("break point", true, found.rate if found else None, BREAK, "/s")
    yield Check("goodput at the break", true, found.goodput if found else None, BREAK, "/s")


def _limit(cell: Cell, seen: Seen) -> Iterator[Check]:
    yield Check("limited by", cell.limit, seen.result.limited_by)


def _spread(runs: list[Seen]) -> Iterator[Check]:
    """How far apart repeats are, and how far they would be on CPUs that were always as fast: by the
    CPU time of one answer, which is always the same work. Only the former is the machine's, too.
    """
    goodputs = [seen.result.goodput for seen in runs]
    works = [seen.truth.work_ms for seen in runs]
    noise = [reason for seen in runs for reason in seen.noise.reasons]
    void = "; ".join(dict.fromkeys([*noise, *_uneven(works)]))
    what = f"goodput of {len(runs)}: coefficient of variation"
    yield Check(what, 0.0, variation(goodputs), SPREAD, void=void)
    even = variation([each * work for each, work in zip(goodputs, works, strict=True)])
    yield Check(f"{what}, at one speed", 0.0, even, SPREAD, void="; ".join(dict.fromkeys(noise)))


def _uneven(works: list[float]) -> Iterator[str]:
    least, most = min(works), max(works)
    if least and most / least >= UNSTEADY_RATIO:
        yield f"the same work took {least:.1f} ms of the CPU in one run and {most:.1f} in another"


def variation(values: list[float]) -> float | None:
    """The coefficient of variation, a share; None of fewer than two values."""
    if len(values) < 2 or not fmean(values):
        return None
    return round(stdev(values) / fmean(values), 4)


_JUDGES: dict[Judge, Callable[[Cell, Seen], Iterator[Check]]] = {
    "times": _times,
    "rate": _rate,
    "counts": _counts,
    "break": _break,
    "limit": _limit,
}
