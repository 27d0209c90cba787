"""Compare two variants by the blocks of a duet: ratios with intervals, and a verdict. Pure.

A block is one restart of both variants, which then ran at once at equal rates. The restart is the
unit of the statistics: a process instance differs from the next of the same code by 1 to 1.5 %, and
requests of one instance don't average that away.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import stats

from load_lab.results.ratio import ALPHA, Pair, Ratio, ratio_of_pairs

Verdict = Literal["faster", "slower", "not slower", "can't tell"]

# The evidence is looked at after each of these numbers of blocks, and after every second later.
_LOOKS = (4, 6, 9, 12)
_LATER = 2
# Looks share their blocks, and a verdict needs half of the threshold, too.
_MIN_SHARE_OF_THRESHOLD = 0.5


def judge(ratio: Ratio | None, threshold: float) -> Verdict:
    """Return the verdict on a ratio of costs, for which more is slower.

    A difference must be certain, and at least half of `threshold`: by tests beyond the whole
    threshold, a build that is slower by exactly that would be found every second time only.
    """
    if ratio is None:
        return "can't tell"
    least = _MIN_SHARE_OF_THRESHOLD * threshold
    if ratio.low > 1 and ratio.ratio >= 1 + least:
        return "slower"
    if ratio.high < 1 and ratio.ratio <= 1 / (1 + least):
        return "faster"
    if ratio.high < 1 + threshold:
        return "not slower"
    return "can't tell"


def is_look(blocks: int) -> bool:
    """Return whether the evidence is looked at after that many blocks: with every look more, the
    chance of a false alarm grows.
    """
    last = _LOOKS[-1]
    return blocks in _LOOKS or (blocks > last and (blocks - last) % _LATER == 0)


def is_clear(pairs: Sequence[Pair], threshold: float) -> bool:
    """Return whether the comparison may stop before its budget ends. What is not slower may still
    be found to be faster.
    """
    ratio = ratio_of_pairs(pairs)
    if ratio is None or not is_look(len(pairs)):
        return False
    verdict = judge(ratio, threshold)
    may_be_faster = ratio.low < 1 / (1 + threshold)
    return verdict in ("slower", "faster") or (verdict == "not slower" and not may_be_faster)


def is_more(shares: Sequence[tuple[float, float]], least: float) -> bool:
    """Return whether the share of failed or late requests is larger in B, by at least `least`: a
    one-sided t-test of the differences of the blocks. A burst in one of them is not enough.
    """
    if len(shares) < _LOOKS[0]:
        return False
    differences = np.array([b - a for a, b in shares])
    error = float(differences.std(ddof=1)) / math.sqrt(len(shares))
    half = float(stats.t.ppf(1 - ALPHA, len(shares) - 1)) * error
    centre = float(differences.mean())
    return centre >= least and centre - half > 0
