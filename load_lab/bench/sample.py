"""One measurement of one variant, and the verdict on several of them."""

from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from load_lab.bench.rows import Target
from load_lab.machine.busy_loop import Busy
from load_lab.results.ratio import Pair, Ratio, ratio_of_pairs

Outcome = Literal["reached", "missed", "void", "failed"]


@dataclass(frozen=True)
class Sample:
    """Counts of a generator: answers per second, bytes of an answer with its headers.

    `wrong` is the reason why the sample is not valid, such as unexpected responses.
    """

    rate: float
    bytes: float
    requests: int
    seconds: float
    busy: Busy
    wrong: str = ""


# One measurement of each variant of a row, one after the other.
Samples = dict[str, Sample]


@dataclass(frozen=True)
class Verdict:
    """One value and its limit: a minimum, or with `at_most` a maximum. Of a ratio, `values` are
    those of the pairs, and `ratio` has their interval; None of fewer than three.
    """

    what: str
    limit: float
    values: list[float]
    outcome: Outcome
    at_most: bool = False
    unit: str = ""
    why: str = ""
    goal: float | None = None
    ratio: Ratio | None = None

    @property
    def reached(self) -> float | None:
        """Return the median; None without measurements."""
        return median(self.values) if self.values else None


def evaluate(target: Target, pairs: list[Samples], *, check: bool) -> Verdict:
    """Evaluate one target over all pairs. Failed takes precedence over void, void over missed."""
    samples = [(name, pair[name]) for pair in pairs for name in (target.variant, target.baseline)]
    wrong = [f"{name}: {sample.wrong}" for name, sample in samples if sample.wrong]
    void = [f"{name}: {sample.busy}" for name, sample in samples if sample.busy.void]
    known = [found for pair in pairs if (found := _pair(target, pair)).is_known]
    limit = target.floor if check else target.must_reach
    ratios = [found.ratio for found in known]
    verdict = compare(_label(target), limit, ratios, at_most=target.metric == "time")
    verdict = replace(verdict, goal=target.goal, ratio=ratio_of_pairs(known))
    if wrong or not ratios:
        return _with_outcome(verdict, "failed", wrong or ["nothing was measured"])
    return (
        _with_outcome(verdict, "void", ["the generator was the limit", *void]) if void else verdict
    )


def compare(
    what: str, limit: float, values: list[float], *, at_most: bool = False, unit: str = ""
) -> Verdict:
    """Compare the median of `values` with `limit`."""
    is_reached = bool(values) and (median(values) <= limit if at_most else median(values) >= limit)
    return Verdict(what, limit, values, "reached" if is_reached else "missed", at_most, unit)


def _with_outcome(verdict: Verdict, outcome: Outcome, reasons: list[str]) -> Verdict:
    return replace(verdict, outcome=outcome, why="; ".join(dict.fromkeys(reasons)))


def _label(target: Target) -> str:
    texts = {
        "rate": f"{target.variant} ÷ {target.baseline}",
        "bytes": f"bytes of {target.baseline} ÷ {target.variant}",
        "time": f"time of {target.variant} ÷ {target.baseline}",
    }
    return texts[target.metric]


def _pair(target: Target, samples: Samples) -> Pair:
    """Return what the ratio is of: A and B of B ÷ A."""
    variant, baseline = samples[target.variant], samples[target.baseline]
    match target.metric:
        case "bytes":
            return Pair(variant.bytes, baseline.bytes)
        case "time":
            return Pair(variant.rate, baseline.rate)
        case _:
            return Pair(baseline.rate, variant.rate)
