"""Where it breaks: sliding windows over a run, and the first that do not keep the bounds.

Pure: it reads no clock, no file and no network.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lab.load.plan import Plan

WINDOW_SECONDS = 5
STEP_SECONDS = 1
IN_A_ROW = 3
# A shorter run has too few windows to break in.
SHORTEST_SECONDS = WINDOW_SECONDS + (IN_A_ROW - 1) * STEP_SECONDS

# What is counted comes to Prometheus by pushes of a second (K6_PROMETHEUS_RW_PUSH_INTERVAL).
PUSH_SECONDS = 1

# Arrivals are whole requests: at 3/s a window holds 15, and one in flight at its edge would be 7 %.
# A shortfall of up to this many requests says nothing.
_WHOLE_REQUESTS = 2


@dataclass(frozen=True)
class Bounds:
    """What counts as unbroken."""

    p95_ms: float = 1000
    error_ratio: float = 0.01
    achieved_ratio: float = 0.95


@dataclass(frozen=True)
class Counters:
    """Running totals at a moment, as Prometheus has them; `p95_ms` is of the window before it."""

    answers: float
    errors: float
    in_time: float
    dropped: float
    p95_ms: float | None


@dataclass(frozen=True)
class Window:
    """WINDOW_SECONDS of a run; `end` in seconds since the load began, rates per second.

    `due` is what had to be answered in it: what was offered a bound and a push earlier. On a ramp
    less was offered then, and an answer within the bound is not late.
    """

    end: float
    offered: float
    due: float
    achieved: float
    goodput: float
    error_ratio: float
    dropped: float
    p95_ms: float | None
    broken: tuple[str, ...] = field(default=())


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


def windows(plan: Plan, at: Callable[[float], Counters], bounds: Bounds) -> list[Window]:
    """The windows of a run. `at` gives the counters at a moment of the plan."""
    ends = range(WINDOW_SECONDS, int(plan.seconds) + 1, STEP_SECONDS)
    return [_window(plan, at, bounds, end) for end in ends]


def find_break(found: Sequence[Window]) -> BreakPoint | None:
    """The break point; None when the run kept its bounds to the end."""
    for index in range(len(found) - IN_A_ROW + 1):
        if all(window.broken for window in found[index : index + IN_A_ROW]):
            return _break_point(found[: index + 1])
    return None


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


def _window(plan: Plan, at: Callable[[float], Counters], bounds: Bounds, end: float) -> Window:
    start = end - WINDOW_SECONDS
    before, after = at(start), at(end)
    answers = after.answers - before.answers
    dropped = (after.dropped - before.dropped) / WINDOW_SECONDS
    offered = plan.offered(start, end)
    late = bounds.p95_ms / 1000 + PUSH_SECONDS
    due, achieved = plan.offered(start - late, end - late), answers / WINDOW_SECONDS
    if plan.unit == "iterations":
        # Whole journeys end long after they arrive: what was not dropped was taken on.
        due, achieved = offered, offered - dropped
    window = Window(
        end=end,
        offered=offered,
        due=due,
        achieved=achieved,
        goodput=(after.in_time - before.in_time) / WINDOW_SECONDS,
        error_ratio=(after.errors - before.errors) / answers if answers else 0.0,
        dropped=dropped,
        p95_ms=after.p95_ms,
    )
    return replace(window, broken=_broken(window, bounds))


def _broken(window: Window, bounds: Bounds) -> tuple[str, ...]:
    reasons = []
    if window.p95_ms is not None and window.p95_ms > bounds.p95_ms:
        reasons.append(f"p95 {window.p95_ms:.0f} ms > {bounds.p95_ms:.0f} ms")
    if window.error_ratio > bounds.error_ratio:
        reasons.append(f"errors {window.error_ratio:.1%} > {bounds.error_ratio:.1%}")
    missing = window.due - window.achieved
    tolerated = max((1 - bounds.achieved_ratio) * window.due, _WHOLE_REQUESTS / WINDOW_SECONDS)
    if missing > tolerated:
        share = window.achieved / window.due
        reasons.append(f"achieved {share:.0%} of the offered rate < {bounds.achieved_ratio:.0%}")
    return tuple(reasons)


def highest_rate(totals: Sequence[float]) -> float | None:
    """The most per second in any window, of running totals in steps of STEP_SECONDS; None when they
    are shorter than a window.
    """
    apart = WINDOW_SECONDS // STEP_SECONDS
    gained = (end - start for start, end in zip(totals, totals[apart:], strict=False))
    most = max(gained, default=None)
    return None if most is None else most / WINDOW_SECONDS
