"""Pictures of several cells: their services, and the limit of their loads."""

import pytest

from load_lab.experiments.report.composition import COLOURS, OTHERS, merge_services
from load_lab.experiments.report.curves import curves
from load_lab.experiments.report.rows import build
from tests.support.report_samples import load, runs


def test_services_idle_in_every_cell_are_merged():
    cells = [
        {"backend": 0.8, "redis": 0.01, "mtail": 0.01, "node-exporter": 0.02},
        {"backend": 0.1, "redis": 0.3},
    ]
    idle, busy = merge_services(cells)
    assert idle == {"backend": 0.8, "redis": 0.01, OTHERS: 0.03}
    assert busy == {"backend": 0.1, "redis": 0.3}


def test_workers_of_old_stack_are_one_service():
    (cell,) = merge_services(
        [{"legacy-web": 0.5, "legacy-worker-1": 0.04, "legacy-worker-2": 0.04}]
    )
    assert cell == {"legacy-web": 0.5, "legacy-workers": 0.08}


def test_every_service_has_unique_colour():
    assert len(set(COLOURS.values())) == len(COLOURS)


@pytest.mark.parametrize(
    ("bounds", "limit"), [((35, 35), 35), ((None, None), 1000), ((35, 90), None)]
)
def test_dotted_line_is_limit_shared_by_loads(bounds, limit):
    header, cells = load()
    panel = next(iter(build(header, runs(cells), []).panels.positions))
    for n, cell in enumerate(cells):
        if bounds[n % 2] is not None:
            cell["workload"]["bound_ms"] = bounds[n % 2]
    times = curves(build(header, runs(cells), []), panel).panels[0]
    names = [
        layer["data"]["name"] for layer in times["layer"] if layer["mark"].get("type") == "rule"
    ]
    assert [times["datasets"][name][0]["y"] for name in names] == ([limit] if limit else [])
