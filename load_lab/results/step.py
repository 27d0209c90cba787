"""A step from one cell of an experiment to another: a ratio of repeats, and its error. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from load_lab.results.formatting import times

_CONFIDENCE = 0.9


@dataclass(frozen=True)
class Step:
    """The ratio of two medians. `error` is half of its interval of 90 %, as a share; None if one of
    the cells has a single repeat.
    """

    factor: float
    error: float | None = None

    @property
    def text(self) -> str:
        """Format as "3.4 ×" or, with an error, "3.4 × ± 12 %"."""
        factor = times(self.factor)
        return factor if self.error is None else f"{factor} ± {_percent(self.error)} %"


def step_between(base: Sequence[float], values: Sequence[float]) -> Step | None:
    """Return the step from the repeats of one cell to those of another; None without a base."""
    if not base or not values or not median(base):
        return None
    return Step(median(values) / median(base), _error(base, values))


def _error(base: Sequence[float], values: Sequence[float]) -> float | None:
    """Return the error of the ratio, by Welch's t interval of the logarithms."""
    if min(len(base), len(values)) < 2 or min(*base, *values) <= 0:
        return None
    # SciPy takes a second to import, which would delay every report of single repeats.
    from scipy import stats

    logs = [[math.log(value) for value in each] for each in (values, base)]
    if all(len(set(each)) == 1 for each in logs):
        return 0.0
    interval = stats.ttest_ind(*logs, equal_var=False).confidence_interval(_CONFIDENCE)
    return math.exp((interval.high - interval.low) / 2) - 1


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.1 else f"{100 * share:.0f}"
