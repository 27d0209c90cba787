"""Where it breaks: the first windows of a run that do not keep the bounds.

Pure: it reads no clock, no file and no network.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lab.analysis.windows import STEP_SECONDS, WINDOW_SECONDS, Window

IN_A_ROW = 3
# A ramp goes on for as many windows after its break before it may stop early.
_AFTER_BREAK = 3
# A shorter run has too few windows to break in.
SHORTEST_SECONDS = WINDOW_SECONDS + (IN_A_ROW - 1) * STEP_SECONDS


@dataclass(frozen=True)
class BreakPoint:
    """The first windows, IN_A_ROW of them, that broke a bound.

    `rate` is what the target bore: the most that it answered well in any window so far, and no more
    than was offered when it broke. A target that falls behind a ramp is only seen to when 5 % of
    what is due are missing, a bound and a push late: by then more is offered than it bears.
    """

    rate: float
    offered: float
    goodput: float
    # Of the window that broke: its end in seconds since the load began, why, and drops per second.
    seconds_into_test: float
    reasons: tuple[str, ...]
    dropped: float = 0.0
    # Busy shares of both sides' CPUs in the windows that decided; None when nothing was sampled.
    target_cpu: float | None = None
    generator_cpu: float | None = None


def find_break(found: Sequence[Window]) -> BreakPoint | None:
    """The break point; None when the run kept its bounds to the end."""
    for index in range(len(found) - IN_A_ROW + 1):
        if all(window.broken for window in found[index : index + IN_A_ROW]):
            return _break_point(found[: index + 1])
    return None


def is_past_break(found: Sequence[Window]) -> bool:
    """Whether a ramp may stop: it broke, and the windows after the break are there."""
    return find_break(found[:-_AFTER_BREAK]) is not None


def _break_point(so_far: Sequence[Window]) -> BreakPoint:
    """The last of the windows is the one that broke.

    Rates are rounded once, for the verdict, the document and the chart: 24.254 rounded for each of
    them was 24.3 in the one, and 24.25, so 24.2, in the others.
    """
    window = so_far[-1]
    sustained = max(w.achieved * (1 - w.error_ratio) for w in so_far)
    return BreakPoint(
        rate=round(min(sustained, window.offered), 2),
        offered=round(window.offered, 2),
        goodput=round(max(w.goodput for w in so_far), 2),
        seconds_into_test=window.end,
        reasons=window.broken,
        dropped=window.dropped,
    )
