"""The failed requests of a load: by which answer, since when, and at which operations."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from load_lab.metrics import queries
from load_lab.metrics.counters import PUSH_SECONDS, Labels, Series
from load_lab.metrics.plan import Plan
from load_lab.metrics.prometheus import Prometheus
from load_lab.results.result import ErrorStart, FailureResult, OperationResult

_REDIRECTS, _REFUSED, _GONE = range(300, 400), (401, 403), (404, 410)
# Statuses of answers that an overload does not give.
LOADLESS = (*_REDIRECTS, *_GONE)
# Of the redirects with a status, for one path to be named.
_MOSTLY = 0.9
# https://grafana.com/docs/k6/latest/javascript-api/error-codes/
_PROBLEMS = {
    "1050": "timeout",
    "1101": "no such host",
    "1211": "timeout",
    "1212": "connection refused",
    "1220": "connection reset",
}
# Answers of requests that were sent before the errors began may come so much later.
_LATE_SECONDS = 3
_NAMED = 2


def failure_results(
    series: Mapping[Labels, Series],
    redirects: Mapping[Labels, Series],
    plan: Plan | None,
    started: float,
) -> list[FailureResult]:
    """Return the failures by answer, the most frequent first; `redirects` has those by path."""
    groups: dict[tuple[int, str], list[tuple[str, Series]]] = defaultdict(list)
    for labels, counts in ((dict(each), counts) for each, counts in series.items()):
        status = int(labels.get("status", 0))
        code = labels.get("error_code", "")
        detail = "" if status else _PROBLEMS.get(code, f"k6's error code {code}" if code else "")
        groups[status, detail].append((labels.get("name", ""), counts))
    paths = _paths(redirects)
    results = []
    for (status, detail), each in groups.items():
        known = sorted(each, key=lambda one: (min(one[1]), -max(one[1].values())))
        after = max(min(known[0][1]) - PUSH_SECONDS - started, 0.0)
        results.append(
            FailureResult(
                status=status,
                detail=paths.get(status, "") if status in _REDIRECTS else detail,
                requests=round(sum(max(counts.values()) for _, counts in each)),
                after=round(after, 1),
                rate=_rate(plan, after),
                operations=list(dict.fromkeys(name for name, _ in known)),
            )
        )
    return sorted(results, key=lambda one: -one.requests)


def _paths(redirects: Mapping[Labels, Series]) -> dict[int, str]:
    """Return the path that most redirects of a status lead to."""
    counts: dict[int, dict[str, float]] = defaultdict(dict)
    for labels, series in ((dict(each), series) for each, series in redirects.items()):
        of_status, path = counts[int(labels["status"])], labels["to"]
        of_status[path] = of_status.get(path, 0) + max(series.values())
    most = {status: max(each, key=lambda path: each[path]) for status, each in counts.items()}
    return {
        status: path if each[path] >= _MOSTLY * sum(each.values()) else f"{path} and others"
        for (status, path), each in zip(most.items(), counts.values(), strict=True)
    }


def _rate(plan: Plan | None, after: float) -> float | None:
    """Return the planned rate at that second, if it rises."""
    if (
        plan is None
        or len({each for stage in plan.stages for each in (stage.start, stage.end)}) < 2
    ):
        return None
    return round(plan.offered(after, after + 1), 1)


def failures_text(failures: Sequence[FailureResult], requests: int) -> str:
    """Return the most frequent failures: "302 to /login/: 412 of 1,300, from 8.6/s on (…)"."""
    return "; ".join(_text(each, requests) for each in failures[:_NAMED])


def _text(failure: FailureResult, requests: int) -> str:
    status = str(failure.status or "no response")
    if failure.detail:
        status += f" to {failure.detail}" if failure.status else f" ({failure.detail})"
    since = f"{failure.after:.0f} s" if failure.rate is None else f"{failure.rate:.1f}/s"
    names = ", ".join(failure.operations[:_NAMED])
    more = len(failure.operations) - _NAMED
    others = f" and {more} more" if more > 0 else ""
    return f"{status}: {failure.requests:,} of {requests:,}, from {since} on ({names}{others})"


def advice(failures: Sequence[FailureResult]) -> str:
    """Return what to do about the most frequent failure. A new mix helps only where addresses were
    missing from the start.
    """
    status = failures[0].status if failures else 0
    if status in _REDIRECTS or status in _REFUSED:
        return "log in again: renew the session or token of the target's file ([auth] or [headers])"
    if status in _GONE and failures[0].after < _LATE_SECONDS:
        return "make the mix again: lab mix make NAME"
    return "see the log of what answered them"


def error_start(
    testid: str,
    series: Mapping[Labels, Series],
    operations: Sequence[OperationResult],
    started: float,
    since: float,
    ended: float,
    prometheus: Prometheus,
) -> ErrorStart | None:
    """Return when the errors began, at or after `since`, and whether the operations that failed
    then succeeded again; None if none failed. `started`, `since` and `ended` are Unix time.
    """
    begun: dict[str, float] = {}
    for labels, counts in series.items():
        if (first := _first_increase(counts, since)) is not None:
            name = dict(labels).get("name", "")
            begun[name] = min(first, begun.get(name, first))
    if not begun:
        return None
    first = min(begun.values())
    runs = queries.one_run(testid)
    good = queries.requests(f'{queries.load(runs)},expected_response="true"', "name")
    before = prometheus.instant_by_label(good, "name", first + _LATE_SECONDS)
    after = prometheus.instant_by_label(good, "name", ended)
    again = [name for name in begun if after.get(name, 0) > before.get(name, 0)]
    return ErrorStart(
        after=round(max(first - PUSH_SECONDS - started, 0.0), 1),
        operations=len(begun),
        of=len(operations),
        lasting=not again,
    )


def _first_increase(counts: Series, since: float) -> float | None:
    """Return the time of the first push from `since` on that has more failures than before."""
    ordered = sorted(counts.items())
    if ordered[0][0] >= since:
        return ordered[0][0]
    return next(
        (at for (_, old), (at, new) in pairwise(ordered) if at >= since and new > old), None
    )
