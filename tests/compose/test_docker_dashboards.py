"""Every expression of every dashboard, with Alloy's metrics of the containers."""

from functools import partial

import pytest

from load_lab.settings import load_settings
from tests.support.dashboard_runs import (
    MAY_BE_EMPTY,
    NATIVE_ONLY,
    check_results,
    run_for_dashboards,
)
from tests.support.dashboards import metric_dashboards


@pytest.fixture(scope="module")
def runs(stack, lab_on_docker):
    if "alloy" in stack.missing:
        pytest.skip(f"without alloy: {stack.missing['alloy']}")
    assert lab_on_docker("up").code == 0
    # A quota below the CPUs of k6's side is drawn as a line.
    with_quota = partial(lab_on_docker, LAB_K6_CPUS="0.9")
    return load_settings().prometheus_url, run_for_dashboards(with_quota).start


@pytest.mark.parametrize("dashboard", metric_dashboards(), ids=lambda one: one["title"])
def test_every_expression_has_a_result(dashboard, runs):
    check_results(*runs, dashboard, MAY_BE_EMPTY | NATIVE_ONLY)
