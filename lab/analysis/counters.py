"""A counter of k6's as it was at any moment, from what was pushed of it.

k6 pushes once a second, each series with the time of its newest sample. What it was between two
pushes lies between their values. To take the last push for it would make windows of 5 s hold four,
five or six of them: where pushes come just about a window's edge, a steady rate read a fifth more.
"""

from bisect import bisect_right
from collections.abc import Sequence

from lab.analysis.breakpoint import PUSH_SECONDS
from lab.analysis.prometheus import Series


class Pushed:
    """The sum of several series, such as those of a counter's names and states; nothing was counted
    before `began`.
    """

    def __init__(self, series: Sequence[Series], began: float = 0.0) -> None:
        self._series = [sorted(one.items()) for one in series if one]
        self._began = began

    def at(self, when: float) -> float:
        """What had been counted by then."""
        return sum(_value(one, when, self._began) for one in self._series)


def _value(pushes: list[tuple[float, float]], when: float, start: float) -> float:
    """Evenly between two pushes; what a push brings came in the second before it."""
    index = bisect_right(pushes, when, key=lambda push: push[0])
    if index == len(pushes):
        return pushes[-1][1]
    at, value = pushes[index]
    before_at, before = pushes[index - 1] if index else (start, 0.0)
    # While nothing is counted nothing is pushed; a push may be late by itself.
    silent = at - before_at >= 2 * PUSH_SECONDS
    began = at - PUSH_SECONDS if silent else before_at
    if when <= began:
        return before
    return before + (value - before) * (when - began) / (at - began)
