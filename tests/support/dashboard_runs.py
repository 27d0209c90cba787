"""Runs that give every dashboard expression a result, and the expressions that may have none."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from grafana.src import break_point
from grafana.src.queries import backend, caches, load, resources, runs, signals
from grafana.src.queries.comparison import align_to_start
from grafana.src.queries.selection import variable_matcher
from load_lab.errors import LabError
from load_lab.stack.native.supervision import wait_for
from tests.support.dashboards import (
    DashboardQueries,
    Expression,
    annotation_expressions,
    panel_expressions,
)

TESTS = variable_matcher()


def _compared(mark: Callable[[str], str], side: str) -> str:
    return align_to_start(mark(variable_matcher(f"testid_{side}")), side)


# The table of all expressions that may have no result, with the reasons.
DOCKER_ONLY = {
    resources.cpu_quotas(): "docker engine only: processes have no quota",
    resources.THROTTLED: "docker engine only: processes have no quota",
    resources.MEMORY_LIMIT: "docker engine only: processes have no limit",
}
NATIVE_ONLY = {
    resources.without_quota(): "native engine only: containers have quotas",
}
MAY_BE_EMPTY = {
    **{resources.pressure(kind): "not every kernel tells it" for kind in ("cpu", "memory", "io")},
    caches.staleness(TESTS, 0.5): "needs SCENARIO=staleness",
    caches.staleness(TESTS, 0.99): "needs SCENARIO=staleness",
    caches.unseen_bookings(TESTS): "needs SCENARIO=staleness",
    load.errors_by_status(TESTS): "there were no errors",
    load.percentile_of(TESTS, 0.95, expected=False): "there were no errors",
    **{
        break_point.points_above(metric, limit): "no point is above the limit"
        for metric, limit in break_point.LIMITED
    },
    signals.seen("throttled", TESTS): "nothing is throttled",
    _compared(runs.breaks, "a"): "the smoke test has no break",
    **{_compared(runs.switches_during, side): "no switch during a run" for side in "ab"},
    signals.seen("killed", TESTS): "services in the lab's own control group are not counted",
    backend.rejected_requests(): "nothing was refused",
    resources.disk("read"): "the page cache had everything",
    backend.locks(): "locks are held for milliseconds, and looked at every 5 s",
}
# The time range only has to contain both runs.
_MARGIN_SECONDS = 10
_COMPARISON_START = 946684800


@dataclass(frozen=True)
class DashboardRuns:
    """Two runs, and the begin of a time range that contains both.

    A run of another test may have ended in that range.
    """

    start: float
    testids: tuple[str, ...]


def run_for_dashboards(lab: Callable[..., Any]) -> DashboardRuns:
    """Run a ramp that breaks on any machine, switch cache layers, run a smoke test."""
    start, testids = time.time() - _MARGIN_SECONDS, []
    late = ("--p95", "1ms")
    layers = ("LAB_REDIS_CACHE=versioned", "LAB_NGINX_CACHE=protected")
    for argv in (
        ("k6", "breakpoint", "--rate", "40", "--duration", "10s", "--scenario", "detail", *late),
        ("set", *layers),
        # A rate needs two scrapes, which are 5 s apart, after the first response.
        ("k6", "smoke", "--vus", "3", "--duration", "25s"),
        ("set", "--preset", "article"),
    ):
        result = lab(*argv, "--json")
        assert result.code == 0, result.err
        if argv[0] == "k6":
            testids.append(json.loads(result.out)["testid"])
    return DashboardRuns(start, tuple(testids))


def queries(url: str, start: float, dashboard: dict[str, Any]) -> DashboardQueries:
    if dashboard["time"]["from"].startswith("2000"):
        return DashboardQueries(url, dashboard, _COMPARISON_START, _COMPARISON_START + 300)
    (choice,) = (one for one in dashboard["templating"]["list"] if one["name"] == "testid")
    # Both runs, where the dashboard can show them.
    chosen = {"testid": choice["allValue"]} if choice.get("includeAll") else {}
    return DashboardQueries(url, dashboard, start, time.time(), **chosen)


def empty_expressions(
    url: str, start: float, dashboard: dict[str, Any], allowed: dict[str, str]
) -> list[Expression]:
    """Return the expressions without a result that are not in `allowed`."""
    prometheus = queries(url, start, dashboard)
    assert not prometheus.empty_variables, f"{dashboard['title']}: {prometheus.empty_variables}"
    expressions = [*panel_expressions(dashboard), *annotation_expressions(dashboard)]
    return [one for one in expressions if one.expr not in allowed and not prometheus.result(one)]


def check_results(
    url: str, start: float, dashboard: dict[str, Any], allowed: dict[str, str]
) -> None:
    """Fail if expressions have no result within 15 s: the end of a test appears 5 s later."""
    empty: list[Expression] = []

    def no_empty_expressions() -> bool:
        empty[:] = empty_expressions(url, start, dashboard, allowed)
        return not empty

    try:
        wait_for(no_empty_expressions, seconds=15, what="a result")
    except LabError:
        pytest.fail("No result:\n" + "\n".join(map(str, empty)), pytrace=False)
