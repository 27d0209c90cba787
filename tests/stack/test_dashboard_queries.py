"""Every expression of every dashboard, sent to a Prometheus that has data of real k6 runs."""

import json

import httpx
import pytest

from load_lab.metrics.prometheus import Prometheus
from load_lab.metrics.push import CPU_BUSY, VERDICT_GOODPUT, VERDICT_PERCENTILES
from load_lab.metrics.queries import one_run
from load_lab.stack.native.supervision import wait_for
from tests.support.dashboard_runs import (
    DOCKER_ONLY,
    MAY_BE_EMPTY,
    NATIVE_ONLY,
    check_results,
    empty_expressions,
    queries,
)
from tests.support.dashboards import (
    Expression,
    annotation_expressions,
    metric_dashboards,
    panel_expressions,
)

ALLOWED = MAY_BE_EMPTY | DOCKER_ONLY


@pytest.fixture(scope="module")
def runs(telemetry_run):
    return telemetry_run.url, telemetry_run.runs.start


@pytest.mark.parametrize("dashboard", metric_dashboards(), ids=lambda one: one["title"])
def test_every_expression_has_a_result(dashboard, runs):
    check_results(*runs, dashboard, ALLOWED)


def _last_sample(url: str, testid: str) -> float:
    params = {"query": f'k6_vus{{testid="{testid}"}}[10m]'}
    (series,) = httpx.get(f"{url}/api/v1/query", params=params).json()["data"]["result"]
    return float(series["values"][-1][0])


def test_each_run_has_one_end_annotation_near_its_last_sample(telemetry_run, runs):
    dashboard = next(one for one in metric_dashboards() if one["uid"] == "lab-load-test")
    (ends,) = (one for one in annotation_expressions(dashboard) if "test end" in one.place)
    testids, marks = set(telemetry_run.runs.testids), dict[str, list[float]]()

    def has_both_runs() -> bool:
        for one in queries(*runs, dashboard).result(ends):
            marks[one["metric"]["testid"]] = [at for at, _ in one["values"]]
        return marks.keys() >= testids

    wait_for(has_both_runs, seconds=15, what="a mark of each run")
    last = {testid: _last_sample(runs[0], testid) for testid in testids}
    late = {testid: [at - last[testid] for at in marks[testid]] for testid in testids}
    assert all(len(delays) == 1 and abs(delays[0]) <= 6 for delays in late.values()), late


def test_verdict_and_cpus_of_each_run_are_pushed(telemetry_run, runs, lab):
    prometheus = Prometheus(runs[0])
    for testid in telemetry_run.runs.testids:
        result = json.loads(lab("show", testid, "--json").out)
        pushed = {
            VERDICT_GOODPUT: result["goodput"],
            VERDICT_PERCENTILES[0.95]: result["p95_ms"] / 1000,
        }
        for name, value in pushed.items():
            query = f"last_over_time({name}{{{one_run(testid)}}}[30m])"
            assert prometheus.instant(query) == pytest.approx(value)
        sides = f"count(count by (side) (last_over_time({CPU_BUSY}{{{one_run(testid)}}}[30m])))"
        assert prometheus.instant(sides) == 2


def test_expression_without_result_is_reported_with_dashboard_and_panel(runs):
    dashboard = next(one for one in metric_dashboards() if one["uid"] == "lab-load-test")
    panel = next(p for p in dashboard["panels"] if p["title"] == "Virtual users")
    expr = panel["targets"][0]["expr"].replace("k6_vus", "k6_vuz")
    panel["targets"][0]["expr"] = expr
    (query,) = [one for one in empty_expressions(*runs, dashboard, ALLOWED) if "k6_vuz" in one.expr]
    message = f"dashboard 'Load test', panel 'Virtual users', expression: {expr}"
    assert str(query) == message


def test_invalid_promql_is_reported_with_panel_and_expression(runs):
    dashboard = metric_dashboards()[0]
    bad = Expression(dashboard["title"], "panel 'x'", "sum(")
    with pytest.raises(AssertionError, match=r"parse error.*panel 'x', expression: sum\("):
        queries(*runs, dashboard).result(bad)


def test_exceptions_match_expressions_of_dashboards():
    expressions = {
        one.expr
        for dashboard in metric_dashboards()
        for one in (*panel_expressions(dashboard), *annotation_expressions(dashboard))
    }
    assert set(ALLOWED | NATIVE_ONLY) <= expressions
