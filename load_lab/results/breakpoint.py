"""Find the break point: the first windows of a run that violate the limits.

Pure: it reads no clock, no file and no network.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from load_lab.metrics.windows import STEP_SECONDS, WINDOW_SECONDS, Window

# Number of consecutive windows over a limit that make a break.
BREAK_WINDOWS = 3
# Number of windows that a ramp runs past its break before it may stop early.
_AFTER_BREAK = 3
# A shorter run has too few windows for a break.
MIN_SECONDS = WINDOW_SECONDS + (BREAK_WINDOWS - 1) * STEP_SECONDS


@dataclass(frozen=True)
class BreakPoint:
    """The first windows, BREAK_WINDOWS of them, that violated a limit.

    `rate` is the sustained rate: the highest rate of successful responses in any window so far, at
    most the offered rate at the break. On a ramp, a break is detected late: 5 % of the due
    responses must be missing, and a response is due one response time limit and one push interval
    after its request. By then, the offered rate is above the sustained rate.
    """

    rate: float
    offered: float
    goodput: float
    # The window that broke: its end (seconds since the load began), reasons, dropped iterations per
    # second.
    seconds_into_test: float
    reasons: tuple[str, ...]
    dropped: float = 0.0
    # CPU utilization (0 to 1) of target and generator in the deciding windows; None without
    # samples.
    target_cpu: float | None = None
    generator_cpu: float | None = None


def find_break(windows: Sequence[Window]) -> BreakPoint | None:
    """Return the break point; None when the run stayed within the limits to the end."""
    for index in range(len(windows) - BREAK_WINDOWS + 1):
        if all(window.broken for window in windows[index : index + BREAK_WINDOWS]):
            return _break_point(windows[: index + 1])
    return None


def is_past_break(windows: Sequence[Window]) -> bool:
    """Return whether a ramp may stop: it broke, and _AFTER_BREAK more windows are complete."""
    return find_break(windows[:-_AFTER_BREAK]) is not None


def _break_point(windows: Sequence[Window]) -> BreakPoint:
    """Return the break point; the last of the windows is the one that broke.

    Rates are rounded once, for the verdict, the document and the chart. Separate rounding gave
    different values: 24.254 became 24.3 in one, and 24.25, so 24.2, in the others.
    """
    window = windows[-1]
    sustained = max(w.achieved * (1 - w.error_ratio) for w in windows)
    return BreakPoint(
        rate=round(min(sustained, window.offered), 2),
        offered=round(window.offered, 2),
        goodput=round(max(w.goodput for w in windows), 2),
        seconds_into_test=window.end,
        reasons=window.broken,
        dropped=window.dropped,
    )
