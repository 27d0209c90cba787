"""Figures as the reader meets them: rounded to what is meaningful, with thousands separators."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

NOTHING = "–"


class Spread(NamedTuple):
    """One figure over the repeats of a cell."""

    median: float
    least: float
    most: float
    repeats: int


def spread(values: Sequence[float | None]) -> Spread | None:
    """Median and range; None when nothing was measured."""
    known = [value for value in values if value is not None]
    return Spread(median(known), min(known), max(known), len(known)) if known else None


def rate(value: float | None) -> str:
    """Per second: two figures that mean something, and no more."""
    if value is None:
        return NOTHING
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"


def whole(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.0f}"


def milliseconds(value: float | None) -> str:
    """Tenths where they mean something."""
    return rate(value) if value is not None and value < 10 else whole(value)


def percent(ratio: float | None) -> str:
    """0.034 → "3.4"; the column says %."""
    if ratio is None:
        return NOTHING
    value = 100 * ratio
    if value and abs(value) < 0.1:
        return "< 0.1"
    return f"{value:.0f}" if value == round(value) or value >= 10 else f"{value:.1f}"


def mebibytes(size: float | None) -> str:
    return NOTHING if size is None else f"{size / 1024**2:,.0f}"


def cores(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def times(factor: float | None) -> str:
    if factor is None:
        return NOTHING
    if factor < 0.95:
        return f"{factor:.2g} ×"
    return f"{factor:,.0f} ×" if factor >= 10 else f"{factor:.1f} ×"


def ranged(found: Spread | None, form: Callable[[float | None], str] = rate) -> str:
    """ "61.2" or, of several repeats, "61.2 (58.0–64.1)"."""
    if found is None:
        return NOTHING
    if found.repeats == 1:
        return form(found.median)
    return f"{form(found.median)} ({form(found.least)}–{form(found.most)})"


def several(count: int, one: str, many: str | None = None) -> str:
    """ "1 cell", "2 cells"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(words: Sequence[str]) -> str:
    """ "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
