"""The operations of a load one by one: how many, how slow, and which exceeded a limit first."""

from collections.abc import Sequence
from dataclasses import dataclass

from load_lab.metrics import queries
from load_lab.metrics.counters import Series
from load_lab.metrics.prometheus import Prometheus
from load_lab.metrics.windows import STEP_SECONDS, WINDOW_SECONDS, Bounds
from load_lab.results.breakpoint import BREAK_WINDOWS
from load_lab.results.result import OperationResult

# At which Prometheus is asked for a percentile so far.
_MOMENTS = 200


def operation_results(
    testid: str, started: float, seconds: float, bounds: Bounds, prometheus: Prometheus
) -> list[OperationResult]:
    """Return the load's operations, the first to exceed a limit first, then the slowest.

    `started` is Unix time. A limit counts as exceeded like the whole load's break point: in
    BREAK_WINDOWS windows in a row. An operation with too few requests for that is judged by all its
    requests so far.
    """
    end = started + seconds + 1
    runs = queries.one_run(testid)
    all_requests = queries.requests(queries.load(runs), "name")
    totals = prometheus.instant_by_label(all_requests, "name", end)
    failures = queries.requests(queries.failed(runs), "name")
    failed = prometheus.instant_by_label(failures, "name", end)
    unstorable, storable = (
        prometheus.instant_by_label(queries.cache_statuses(runs, status), "name", end)
        for status in ("UNSTORABLE", "STORABLE")
    )
    so_far = _so_far(runs, started, seconds, prometheus)
    windows = _in_windows(runs, started, seconds, prometheus)
    exceeded = {name: _exceeded_after(name, windows, so_far, bounds, started) for name in totals}
    first = min((after for after in exceeded.values() if after is not None), default=seconds)
    # A queue after that would hide the differences.
    means = prometheus.instant_by_label(
        queries.mean_of(queries.durations(runs), "name"), "name", started + min(first, seconds)
    )
    results = [
        OperationResult(
            name=name,
            requests=round(requests),
            failed=round(failed.get(name, 0)),
            p95_ms=_last_milliseconds(so_far.times.get(name)),
            mean_ms=round(1000 * means[name], 1) if name in means else None,
            exceeded_after=exceeded[name],
            unstorable=round(unstorable.get(name, 0)),
            storable=round(storable.get(name, 0)),
        )
        for name, requests in totals.items()
    ]
    return sorted(results, key=_order)


@dataclass(frozen=True)
class _Measured:
    """The p95 in seconds and the share of failed requests over time, by operation."""

    times: dict[str, Series]
    errors: dict[str, Series]

    def of(self, name: str) -> tuple[Series, Series]:
        return self.times.get(name, {}), self.errors.get(name, {})


def _in_windows(runs: str, started: float, seconds: float, prometheus: Prometheus) -> _Measured:
    # A load that is shorter than a window has none.
    ranges = (started + WINDOW_SECONDS, started + max(seconds, WINDOW_SECONDS), STEP_SECONDS)
    times = queries.percentile_by_operation(runs, 0.95, f"{WINDOW_SECONDS}s")
    errors = queries.error_ratio_by_operation(runs, f"{WINDOW_SECONDS}s")
    return _Measured(
        prometheus.by_label(times, "name", *ranges), prometheus.by_label(errors, "name", *ranges)
    )


def _so_far(runs: str, started: float, seconds: float, prometheus: Prometheus) -> _Measured:
    """Return what the requests since the start give at each moment. One request is enough: a window
    needs two pushes of a series, and an operation of a large mix may have one.
    """
    # Moments until the load's end, since k6 then marks its series stale.
    ranges = (started, started + seconds, max(1, seconds / _MOMENTS))
    times = queries.percentile_of(queries.durations(runs), 0.95, "name")
    errors = queries.error_ratio_so_far_by_operation(runs)
    return _Measured(
        prometheus.by_label(times, "name", *ranges), prometheus.by_label(errors, "name", *ranges)
    )


def _exceeded_after(
    name: str, windows: _Measured, so_far: _Measured, bounds: Bounds, started: float
) -> float | None:
    if len(windows.times.get(name, {})) >= BREAK_WINDOWS:
        return exceeded_after(*windows.of(name), bounds, started)
    return exceeded_for_good_after(*so_far.of(name), bounds, started)


def exceeded_after(
    p95_seconds: Series, error_ratios: Series, bounds: Bounds, started: float
) -> float | None:
    """Return the seconds into the load at the end of the first of BREAK_WINDOWS windows in a row
    that exceeded a limit; None if there are none. Both series map Unix time to a window's value.
    """
    broken = _broken(p95_seconds, error_ratios, bounds)
    first = _first_run(list(broken.values()))
    return None if first is None else round(list(broken)[first] - started, 1)


def exceeded_for_good_after(
    p95_seconds: Series, error_ratios: Series, bounds: Bounds, started: float
) -> float | None:
    """Return the seconds into the load from which the values of all requests so far exceeded a
    limit until its end; None if they did not at the end.
    """
    since = None
    for at, is_broken in _broken(p95_seconds, error_ratios, bounds).items():
        since = (since or at) if is_broken else None
    return None if since is None else round(since - started, 1)


def _broken(p95_seconds: Series, error_ratios: Series, bounds: Bounds) -> dict[float, bool]:
    """Return whether a limit was exceeded, by moment and in their order."""
    return {
        at: p95_seconds.get(at, 0) * 1000 > bounds.p95_ms
        or error_ratios.get(at, 0) > bounds.error_ratio
        for at in sorted({*p95_seconds, *error_ratios})
    }


def _first_run(broken: Sequence[bool]) -> int | None:
    """Return where the first BREAK_WINDOWS true values in a row begin."""
    starts = range(len(broken) - BREAK_WINDOWS + 1)
    return next((n for n in starts if all(broken[n : n + BREAK_WINDOWS])), None)


def _last_milliseconds(seconds: Series | None) -> float | None:
    return round(seconds[max(seconds)] * 1000, 1) if seconds else None


def _order(result: OperationResult) -> tuple[float, float]:
    exceeded = float("inf") if result.exceeded_after is None else result.exceeded_after
    return exceeded, -(result.p95_ms or 0)


def first_exceeded(operations: Sequence[OperationResult]) -> list[OperationResult]:
    """Return the operations that exceeded a limit first: behind one queue, all do within a window.
    The one that took longest until then comes first.
    """
    after = {o.name: o.exceeded_after for o in operations if o.exceeded_after is not None}
    end = min(after.values(), default=0) + WINDOW_SECONDS
    rivals = (o for o in operations if o.name in after and after[o.name] <= end)
    return sorted(rivals, key=usual_ms, reverse=True)


def usual_ms(operation: OperationResult) -> float:
    """Return how long the operation took until the first one exceeded a limit."""
    # Older results have no mean.
    return operation.mean_ms or operation.p95_ms or 0.0
