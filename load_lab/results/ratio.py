"""The ratio of two arms with its confidence interval: of pairs of trials, or of repeats. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from load_lab.results.formatting import times

# What an interval leaves out: of pairs, the false alarms for each time that they are judged.
ALPHA = 0.02
_ALPHA_OF_REPEATS = 0.1


@dataclass(frozen=True)
class Ratio:
    """B ÷ A of a metric, with its confidence interval: any value, where it is not known.

    `resolution` is the half width of the interval: by so much, as a share, this machine can tell.
    """

    ratio: float
    low: float = 0.0
    high: float = math.inf

    @property
    def resolution(self) -> float:
        return math.sqrt(self.high / self.low) - 1 if self.low else math.inf

    @property
    def text(self) -> str:
        """Format as "3.4 ×" or, with an interval, "3.4 × ± 12 %"."""
        factor, error = times(self.ratio), self.resolution
        return factor if math.isinf(error) else f"{factor} ± {error_text(error)}"


@dataclass(frozen=True)
class Pair:
    """A metric of both arms in one trial; `swapped` if B had the first arm's place."""

    a: float
    b: float
    swapped: bool = False

    @property
    def is_known(self) -> bool:
        return self.a > 0 and self.b > 0

    @property
    def ratio(self) -> float:
        return self.b / self.a


def ratio_of_pairs(pairs: Sequence[Pair], alpha: float = ALPHA) -> Ratio | None:
    """Return the ratio with a t interval of 1 - `alpha`; None with fewer than three pairs that are
    known.

    The log ratios are regressed on which arm had the first place: what differs between the places,
    such as the data on disk of two stacks, is not counted as a difference of the arms.
    """
    known = [pair for pair in pairs if pair.is_known]
    if len(known) < 3:
        return None
    by_place = [
        [math.log(pair.ratio) for pair in known if pair.swapped == swapped]
        for swapped in {pair.swapped for pair in known}
    ]
    freedom = len(known) - len(by_place)
    variance = sum((log - fmean(logs)) ** 2 for logs in by_place for log in logs) / freedom
    error = math.sqrt(variance * sum(1 / len(logs) for logs in by_place)) / len(by_place)
    # SciPy takes a second to import, which would delay every other command.
    from scipy import stats

    half = float(stats.t.ppf(1 - alpha / 2, freedom)) * error
    return _around(math.exp(fmean(map(fmean, by_place))), half)


def ratio_of_repeats(base: Sequence[float], values: Sequence[float]) -> Ratio | None:
    """Return the ratio of the medians of two cells, with the width of Welch's t interval of the
    logarithms, if both have several repeats; None without a base.
    """
    if not base or not values or not median(base):
        return None
    ratio = median(values) / median(base)
    if min(len(base), len(values)) < 2 or min(*base, *values) <= 0:
        return Ratio(ratio)
    logs = [[math.log(value) for value in each] for each in (values, base)]
    if all(len(set(each)) == 1 for each in logs):
        return _around(ratio, 0.0)
    from scipy import stats

    test = stats.ttest_ind(*logs, equal_var=False)
    interval = test.confidence_interval(1 - _ALPHA_OF_REPEATS)
    return _around(ratio, float(interval.high - interval.low) / 2)


def _around(ratio: float, half: float) -> Ratio:
    """Return the ratio with the half width of the interval of its logarithm."""
    return Ratio(ratio, ratio * math.exp(-half), ratio * math.exp(half))


def error_text(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
