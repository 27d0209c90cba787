"""Read the facts of a diagnosis from a result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.period import Period, period_between, rates_between
from load_lab.diagnosis.prediction import Prediction, predicted_rate
from load_lab.metrics.windows import ERRORS, WINDOW_SECONDS, Bounds, Window
from load_lab.results.failures import LOADLESS, advice
from load_lab.results.result import ErrorStart, Result
from load_lab.settings import Settings
from load_lab.targets.reference.app import answers_at

# The quiet part of a ramp, in relation to the rate that broke.
_QUIET = (0.2, 0.6)
# Several windows, whose ends are counts of the requests in flight.
_EARLY_SECONDS = 10
# Windows, which begin a second apart; and of a window's mean.
_LATER, _STEADY = 3, 1.3
# Cores of a process that can't use more than one; of another one they say nothing.
_FULL_PROCESS, _ONE_CPU = 0.85, 1.1
# Of the operations, for errors of all; and of p95 before them.
_MOST_OPERATIONS, _AS_QUICK, _CLEARLY_SLOWER_MS = 0.5, 1.5, 10
_NEARLY_ALL = 0.9
TOO_MANY_REQUESTS = "429"


def facts_of(
    result: Result, settings: Settings, bounds: Bounds, rejections: Mapping[str, int]
) -> Facts | None:
    """Return the facts of a run that broke, or that its full generator ended; None for another
    one, or without the period that decides.
    """
    decisive = _decisive(result)
    if decisive is None:
        return None
    saturated = _period(result, decisive.start, decisive.end)
    if saturated is None:
        return None
    url = result.target.url if result.target else ""
    # The first requests of a new process may be late without a queue; then quick ones follow.
    until = [w for w in result.windows if w.end <= decisive.start + WINDOW_SECONDS]
    p95 = min((w.p95_ms for w in until if w.p95_ms is not None), default=None)
    # A journey has several requests.
    is_journey = result.unit == "iterations"
    alone = None if is_journey else seconds_alone(result.windows, decisive.start)
    return Facts(
        saturated=saturated,
        begin=_period(result, 0, result.windows[0].end, counted=False),
        early=_period(result, 0, _EARLY_SECONDS),
        half=_quiet(result, decisive.rate),
        p95_limit=bounds.p95_ms / 1000,
        first_p95=None if p95 is None else p95 / 1000,
        alone=alone,
        limited_by=result.limited_by,
        observed=result.target is None or result.target.observed,
        rejections={**rejections, "limit": result.statuses.get(TOO_MANY_REQUESTS, 0)},
        logged=result.logged_errors,
        failed=result.failed,
        by_errors=any(reason.startswith(ERRORS) for reason in decisive.reasons),
        began=began_at_once(result),
        unloaded=unloaded_status(result),
        advice=advice(result.failures),
        unseen=tuple(result.unseen_signals),
        **limits_of(url, settings, saturated),
        **_waking(result),
    )


def seconds_alone(windows: Sequence[Window], until: float) -> float | None:
    """Return how long a request takes without a queue: the least mean of a window before `until`
    without errors of which a later one is as quick. Where a queue grows from the beginning on,
    nobody knows.
    """
    means = [
        (w.mean_ms, later.mean_ms)
        for w, later in zip(windows, windows[_LATER:], strict=False)
        if w.end <= until + WINDOW_SECONDS and not w.error_ratio
    ]
    steady = [mean for mean, later in means if mean and later and later <= _STEADY * mean]
    return min(steady) / 1000 if steady else None


def began_at_once(result: Result) -> ErrorStart | None:
    """Return when errors began, if that was one moment for most operations, none of which
    succeeded again, and answers stayed as quick as before. An overload has successes between its
    errors, and is slow.
    """
    began = result.errors_began
    if began is None or not began.lasting or began.operations < _MOST_OPERATIONS * began.of:
        return None
    before = [w.p95_ms for w in result.windows if w.p95_ms and w.end <= began.after]
    after = [w.p95_ms for w in result.windows if w.p95_ms and w.end > began.after + WINDOW_SECONDS]
    if not before or not after:
        return None
    return began if max(after) <= _AS_QUICK * before[-1] + _CLEARLY_SLOWER_MS else None


def unloaded_status(result: Result) -> int | None:
    """Return the status of nearly all errors, if it is one that no load causes."""
    if not result.failures:
        return None
    first, all_failed = result.failures[0], sum(each.requests for each in result.failures)
    is_cause = first.status in LOADLESS and first.requests >= _NEARLY_ALL * all_failed
    return first.status if is_cause else None


def _waking(result: Result) -> dict[str, Any]:
    """Return the fields of `Facts` about CPUs that sleep; none where they were not measured."""
    if result.target_cpus is None or result.wake_ms is None:
        return {}
    return {"cpus": result.target_cpus, "wake": result.wake_ms / 1000}


@dataclass(frozen=True)
class _Decisive:
    """The seconds that decided about a run, the rate there, and why it broke, if it did."""

    start: float
    end: float
    rate: float
    reasons: tuple[str, ...] = ()


def _decisive(result: Result) -> _Decisive | None:
    point, windows = result.break_point, result.windows
    if result.prometheus is None or not windows:
        return None
    if point:
        first = point.seconds_into_test
        end = _end_of_break(windows, first)
        return _Decisive(first - WINDOW_SECONDS, end, point.rate, tuple(point.reasons))
    if result.outcome == "held" and result.stopped_after is not None:
        end = windows[-1].end
        return _Decisive(end - WINDOW_SECONDS, end, windows[-1].offered)
    return None


def _end_of_break(windows: Sequence[Window], start: float) -> float:
    """Return when the windows from `start` on no longer exceed a limit."""
    after = takewhile(lambda window: window.broken, (w for w in windows if w.end >= start))
    return max((window.end for window in after), default=start)


def expected_capacity(result: Result, settings: Settings) -> Prediction:
    """Return the rate at which the busiest resource would be full, by a load that held."""
    if result.prometheus is None or not result.windows:
        return Prediction()
    seen = _period(result, WINDOW_SECONDS, result.windows[-1].end, counted=False)
    if seen is None:
        return Prediction()
    url = result.target.url if result.target else ""
    limits = known_limits(url, settings)
    return predicted_rate(Facts(seen, half=seen, **limits, **_waking(result)))


def limits_of(url: str, settings: Settings, saturated: Period) -> dict[str, Any]:
    """Return the fields of `Facts` that tell how much the server at `url` admits at once."""
    return known_limits(url, settings) or _seen_limits(saturated)


def known_limits(url: str, settings: Settings) -> dict[str, Any]:
    """Return the fields of `Facts` that the settings of the reference app tell; none for a target
    at another address.
    """
    if not answers_at(url, settings):
        return {}
    common = {"max_connections": settings.LAB_DB_MAX_CONNECTIONS}
    if url.endswith("/async") and settings.LAB_SECOND_SERVER != "off":
        return {**common, "processes": 1}
    pool, workers = settings.pool_size, settings.LAB_WORKERS
    return {
        **common,
        "slots": settings.worker_slots,
        "processes": workers,
        "pool": pool and pool * workers,
    }


def _seen_limits(seen: Period) -> dict[str, int]:
    """Return the processes of a server whose settings are not known: as many as use the same CPU
    time as a full one, of which Python uses one CPU.
    """
    is_full = _FULL_PROCESS <= seen.busiest <= _ONE_CPU
    return {"processes": round(seen.server_cpu / seen.busiest)} if is_full else {}


def _quiet(result: Result, rate: float) -> Period | None:
    low, high = (share * rate for share in _QUIET)
    ends = [window.end for window in result.windows if low <= window.offered <= high]
    # Those seen in the server: k6's counts include the way to it.
    return _period(result, ends[0] - WINDOW_SECONDS, ends[-1], counted=False) if ends else None


def _period(result: Result, start: float, end: float, *, counted: bool = True) -> Period | None:
    """Return a period; if not `counted`, requests in flight are those seen, since k6's counts
    are those at the ends of windows, of which the first seconds have one.
    """
    rates, started = rates_between(result.windows, start, end), 0.0
    if result.prometheus:
        started = result.prometheus.start
    if rates is None:
        return None
    if result.unit == "iterations" or not counted:
        # A journey has several requests, and pauses between them.
        rates = replace(rates, in_system=None)
    return period_between(rates, result.signals, result.cpu, started + start, started + end)
