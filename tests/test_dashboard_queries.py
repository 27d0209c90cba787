"""Every expression of every dashboard, asked of a Prometheus that real k6 runs have filled."""

import time

import pytest
from support.dashboards import Asked, Questions, measuring, of_annotations, of_panels

from grafana.src.queries import backend, caches, knee, load, resources
from grafana.src.queries.selection import chosen
from lab.engine.native.supervision import wait_for
from lab.errors import LabError

TESTS = chosen()
# The one table of expressions that may have no result, and why.
MAY_BE_EMPTY = {
    resources.THROTTLED: "docker engine only: processes have no quota",
    resources.MEMORY_LIMIT: "docker engine only: processes have no limit",
    **{resources.pressure(kind): "not every kernel tells it" for kind in ("cpu", "memory", "io")},
    caches.staleness(TESTS, 0.5): "needs SCENARIO=staleness",
    caches.staleness(TESTS, 0.99): "needs SCENARIO=staleness",
    load.errors_by_status(TESTS): "there were no errors",
    knee.knee(TESTS): "no bound was broken",
    backend.refused(): "nothing was refused",
    backend.locks(): "locks are held for milliseconds, and looked at every 5 s",
}
# The range only has to hold both runs.
MARGIN_SECONDS = 10
COMPARED_FROM = 946684800


@pytest.fixture(scope="module")
def runs(lab, stack):
    """A ramp, a switch of layers, and a smoke test: when they began and where."""
    began = time.time() - MARGIN_SECONDS
    layers = ("LAB_REDIS_CACHE=versioned", "LAB_NGINX_CACHE=protected")
    for words in (
        ("k6", "breakpoint", "--rate", "100", "--duration", "10s", "--scenario", "detail"),
        ("set", *layers),
        ("k6", "smoke", "--vus", "3", "--duration", "12s"),
        ("set", "--preset", "article"),
    ):
        said = lab(*words, "--json")
        assert said.code == 0, said.err
    return stack.settings().prometheus_url, began


def _questions(url, began, dashboard):
    if dashboard["time"]["from"].startswith("2000"):
        return Questions(url, dashboard, COMPARED_FROM, COMPARED_FROM + 300)
    return Questions(url, dashboard, began, time.time())


def _unanswered(url, began, dashboard) -> list[Asked]:
    questions = _questions(url, began, dashboard)
    assert not questions.empty_variables, f"{dashboard['title']}: {questions.empty_variables}"
    asked = [*of_panels(dashboard), *of_annotations(dashboard)]
    return [one for one in asked if one.expr not in MAY_BE_EMPTY and not questions.answer(one)]


@pytest.mark.parametrize("dashboard", measuring(), ids=lambda one: one["title"])
def test_every_expression_has_a_result(dashboard, runs):
    left: list[Asked] = []

    def all_answered():
        left[:] = _unanswered(*runs, dashboard)
        return not left

    # The end of a test is known 15 s after it.
    try:
        wait_for(all_answered, seconds=30, what="a result")
    except LabError:
        pytest.fail("No result:\n" + "\n".join(map(str, left)), pytrace=False)


def test_a_wrong_name_is_told_with_its_dashboard_panel_and_expression(runs):
    dashboard = next(one for one in measuring() if one["uid"] == "lab-load-test")
    panel = next(p for p in dashboard["panels"] if p["title"] == "Virtual users")
    expr = panel["targets"][0]["expr"].replace("k6_vus", "k6_vuz")
    panel["targets"][0]["expr"] = expr
    (told,) = [one for one in _unanswered(*runs, dashboard) if "k6_vuz" in one.expr]
    wanted = f"dashboard 'Load test', panel 'Virtual users', expression: {expr}"
    assert str(told) == wanted


def test_an_expression_that_is_no_promql_is_told_alike(runs):
    dashboard = measuring()[0]
    bad = Asked(dashboard["title"], "panel 'x'", "sum(")
    with pytest.raises(AssertionError, match=r"parse error.*panel 'x', expression: sum\("):
        _questions(*runs, dashboard).answer(bad)


def test_each_exception_is_an_expression_of_a_panel():
    asked = {one.expr for dashboard in measuring() for one in of_panels(dashboard)}
    assert set(MAY_BE_EMPTY) <= asked
