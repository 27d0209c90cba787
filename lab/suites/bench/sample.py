"""One measurement of one variant, and the verdict on several of them."""

from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from lab.suites.bench.busy import Busy
from lab.suites.bench.rows import Target

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
Pair = dict[str, Sample]


@dataclass(frozen=True)
class Verdict:
    """One value and its limit: a minimum, or with `at_most` a maximum."""

    what: str
    limit: float
    values: list[float]
    outcome: Outcome
    at_most: bool = False
    unit: str = ""
    why: str = ""

    @property
    def reached(self) -> float | None:
        """Return the median; None without measurements."""
        return median(self.values) if self.values else None


def judge(target: Target, pairs: list[Pair], *, check: bool) -> Verdict:
    """Judge one target over all pairs: failed takes precedence over void, and void over missed."""
    named = [(name, pair[name]) for pair in pairs for name in (target.way, target.over)]
    wrong = [f"{name}: {sample.wrong}" for name, sample in named if sample.wrong]
    void = [f"{name}: {sample.busy}" for name, sample in named if sample.busy.void]
    ratios = [_ratio(target, pair) for pair in pairs if _is_sound(target, pair)]
    limit = target.floor if check else target.must_reach
    verdict = against(_what(target), limit, ratios, at_most=target.figure == "time")
    if wrong or not ratios:
        return _withheld(verdict, "failed", wrong or ["nothing was measured"])
    return _withheld(verdict, "void", ["the generator was the limit", *void]) if void else verdict


def against(
    what: str, limit: float, values: list[float], *, at_most: bool = False, unit: str = ""
) -> Verdict:
    """Compare the median of `values` with `limit`."""
    holds = bool(values) and (median(values) <= limit if at_most else median(values) >= limit)
    return Verdict(what, limit, values, "reached" if holds else "missed", at_most, unit)


def _withheld(verdict: Verdict, outcome: Outcome, reasons: list[str]) -> Verdict:
    return replace(verdict, outcome=outcome, why="; ".join(dict.fromkeys(reasons)))


def _what(target: Target) -> str:
    texts = {
        "rate": f"{target.way} ÷ {target.over}",
        "bytes": f"bytes of {target.over} ÷ {target.way}",
        "time": f"time of {target.way} ÷ {target.over}",
    }
    return texts[target.figure]


def _is_sound(target: Target, pair: Pair) -> bool:
    """Return whether the ratio can be computed."""
    figure = "bytes" if target.figure == "bytes" else "rate"
    return all(getattr(pair[name], figure) > 0 for name in (target.way, target.over))


def _ratio(target: Target, pair: Pair) -> float:
    way, over = pair[target.way], pair[target.over]
    match target.figure:
        case "bytes":
            return over.bytes / way.bytes
        case "time":
            return over.rate / way.rate
        case _:
            return way.rate / over.rate
