"""What the lab reported, against what is known. The bounds are explained in docs/calibration.md."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

from lab.host.cpu_speed import UNSTEADY_RATIO
from lab.suites.calibration.cells import Cell, Judge
from lab.suites.calibration.check import Check
from lab.suites.calibration.noise import Noise
from lab.suites.calibration.reference_values import Truth

TIMES, RATES, BREAK, SPREAD = 0.02, 0.01, 0.05, 0.05
# k6 fixes the growth factor of its native histograms' buckets.
BUCKET = 1.1
SHARES = (50, 90, 95, 99)
# What k6 itself may add to so many of the answers, in ms: while it begins a request, and while it
# pushes or collects its garbage, it reads none.
OWN_WORK_MS = {50: 0.6, 90: 1.0, 95: 2.0, 99: 5.0}


@dataclass(frozen=True)
class Seen:
    """One run: `figures` as the lab reports them, the server's `truth`, what the loopback adds to
    its times, and what Prometheus has: percentiles in ms by share, and the load's requests. It is
    the quietest of so many `tries`.
    """

    figures: dict[str, Any]
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
        said = seen.figures[f"p{share}_ms"]
        # Half of the requests are never late by the machine alone.
        void = seen.noise.in_times if share > SHARES[0] else ""
        more = round(OWN_WORK_MS[share] / true, 3) if true else 0.0
        what = f"k6's p{share}"
        yield Check(what, true, said, TIMES, " ms", allowed_above=more, void=void)
    for share in SHARES:
        said, there = seen.figures[f"p{share}_ms"], seen.prometheus_ms[share]
        rounded = None if there is None else round(there, 2)
        yield Check(f"Prometheus' p{share}", said, rounded, BUCKET, " ms", factor=True)


def _rate(cell: Cell, seen: Seen) -> Iterator[Check]:
    true = round(seen.truth.rate, 2)
    yield Check("requests per second", true, seen.figures["rps"], RATES, "/s")
    if cell.rate:
        best = seen.truth.best_rate or 0.0
        yield Check("goodput, best 5 s", best, seen.figures["goodput"], RATES, "/s")


def _counts(_cell: Cell, seen: Seen) -> Iterator[Check]:
    answered, cut_off = seen.truth.requests, seen.truth.cut_off
    yield Check("requests in k6's summary", answered + cut_off, seen.figures["requests"])
    yield Check("requests in Prometheus", answered + cut_off, seen.prometheus_requests)
    yield Check("failed requests", cut_off, seen.figures["failed"])


def _break(cell: Cell, seen: Seen) -> Iterator[Check]:
    found = seen.figures["break_point"] or {}
    true = float(cell.breaks_at or 0)
    yield Check("break point", true, found.get("rate"), BREAK, "/s")
    yield Check("goodput at the break", true, found.get("goodput"), BREAK, "/s")


def _limit(cell: Cell, seen: Seen) -> Iterator[Check]:
    yield Check("limited by", cell.limit, seen.figures["limited_by"])


def _spread(runs: list[Seen]) -> Iterator[Check]:
    """How far apart repeats are, and how far they would be on CPUs that were always as fast: by the
    CPU time of one answer, which is always the same work. Only the former is the machine's, too.
    """
    goodputs = [seen.figures["goodput"] for seen in runs]
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
