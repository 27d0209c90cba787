"""Format values for readers: rounded to significant digits, with thousands separators."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

NO_VALUE = "–"
# The goodput of a run in which no response met the limit.
NONE_IN_TIME = "none in time"


class Spread(NamedTuple):
    """One metric over the repeats of a cell."""

    median: float
    minimum: float
    maximum: float
    repeats: int


def spread(values: Sequence[float | None]) -> Spread | None:
    """Return median and range; None without values."""
    numbers = [value for value in values if value is not None]
    return Spread(median(numbers), min(numbers), max(numbers), len(numbers)) if numbers else None


def rate(value: float | None) -> str:
    """Format a rate per second: two decimals below 1, one below 100, none from 100 on."""
    if value is None:
        return NO_VALUE
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"


def goodput(value: float | None) -> str:
    return NONE_IN_TIME if value == 0 else rate(value)


def whole(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:,.0f}"


def milliseconds(value: float | None) -> str:
    """Format milliseconds; decimals only below 10."""
    return rate(value) if value is not None and value < 10 else whole(value)


def percent(ratio: float | None) -> str:
    """Format a ratio: 0.034 → "3.4"; the column heading has the %."""
    if ratio is None:
        return NO_VALUE
    value = 100 * ratio
    if value and abs(value) < 0.1:
        return "< 0.1"
    return f"{value:.0f}" if value == round(value) or value >= 10 else f"{value:.1f}"


def mebibytes(size: float | None) -> str:
    return NO_VALUE if size is None else f"{size / 1024**2:,.0f}"


def cores(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.2f}"


def times(factor: float | None) -> str:
    if factor is None:
        return NO_VALUE
    if factor < 0.95:
        return f"{factor:.2g} ×"
    return f"{factor:,.0f} ×" if factor >= 10 else f"{factor:.1f} ×"


def median_and_range(values: Spread | None, text: Callable[[float | None], str] = rate) -> str:
    """Format as "61.2" or, for several repeats, "61.2 (58.0–64.1)"."""
    if values is None:
        return NO_VALUE
    if values.repeats == 1:
        return text(values.median)
    return f"{text(values.median)} ({text(values.minimum)}–{text(values.maximum)})"


def quantity(count: int, one: str, many: str | None = None) -> str:
    """Format a count: "1 cell", "2 cells"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def join_words(words: Sequence[str]) -> str:
    """Join words: "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
