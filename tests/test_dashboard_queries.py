"""Every expression of every dashboard, asked of a Prometheus that real k6 runs have filled."""

import pytest
from support.answers import (
    DOCKER_ONLY,
    MAY_BE_EMPTY,
    NATIVE_ONLY,
    check_answers,
    questions,
    run_for_dashboards,
    unanswered,
)
from support.dashboards import Asked, measuring, of_panels

ALLOWED = MAY_BE_EMPTY | DOCKER_ONLY


@pytest.fixture(scope="module")
def runs(lab, stack):
    return stack.settings().prometheus_url, run_for_dashboards(lab)


@pytest.mark.parametrize("dashboard", measuring(), ids=lambda one: one["title"])
def test_every_expression_has_a_result(dashboard, runs):
    check_answers(*runs, dashboard, ALLOWED)


def test_a_wrong_name_is_told_with_its_dashboard_panel_and_expression(runs):
    dashboard = next(one for one in measuring() if one["uid"] == "lab-load-test")
    panel = next(p for p in dashboard["panels"] if p["title"] == "Virtual users")
    expr = panel["targets"][0]["expr"].replace("k6_vus", "k6_vuz")
    panel["targets"][0]["expr"] = expr
    (told,) = [one for one in unanswered(*runs, dashboard, ALLOWED) if "k6_vuz" in one.expr]
    wanted = f"dashboard 'Load test', panel 'Virtual users', expression: {expr}"
    assert str(told) == wanted


def test_an_expression_that_is_no_promql_is_told_alike(runs):
    dashboard = measuring()[0]
    bad = Asked(dashboard["title"], "panel 'x'", "sum(")
    with pytest.raises(AssertionError, match=r"parse error.*panel 'x', expression: sum\("):
        questions(*runs, dashboard).answer(bad)


def test_each_exception_is_an_expression_of_a_panel():
    asked = {one.expr for dashboard in measuring() for one in of_panels(dashboard)}
    assert set(ALLOWED | NATIVE_ONLY) <= asked
