"""An experiment whose target has a quarter of a CPU: cells are measured, and the cache locks."""

import json
import shutil
from contextlib import contextmanager

import psutil
import pytest

from load_lab.paths import ROOT
from tests.stack.bottleneck.injections import cpu_group, leave_group

pytestmark = [pytest.mark.alone, pytest.mark.machine(part="slow")]

CELLS = ("detail/fast/none", "detail/naive/nginx-protected-cold")
MEASURING = ("prometheus", "node-exporter", "process-exporter", "postgres-exporter")


@contextmanager
def quarter_of_a_cpu(engine):
    """Limit all that supervisor starts, but not what measures it."""
    supervisor = engine._supervision._call("getPID")
    with cpu_group(supervisor, cpus=0.25):
        pids = engine.pids()
        leave_group(psutil.Process(pids[name]) for name in MEASURING)
        yield


def test_cells_are_measured_and_no_request_fails_behind_the_lock(lab, stack):
    only = (part for name in CELLS for part in ("--only", name))
    with quarter_of_a_cpu(stack):
        result = lab("run", "cache-ladder", "--quick", *only, "--json")
    assert result.code == 0, result.err
    cells = {cell["name"]: cell for cell in result.json["cells"]}
    assert {name: cell["state"] for name, cell in cells.items()} == dict.fromkeys(CELLS, "measured")
    # Requests beyond the rate limit are refused; none fails.
    assert cells["detail/naive/nginx-protected-cold"]["failed_ratio"] == 0
    # One page is built at a time, by few requests.
    builds = cells["detail/naive/nginx-protected-cold"]["builds"]["hotel_detail"]
    assert builds < cells["detail/naive/nginx-protected-cold"]["requests"] / 10
    folder = (ROOT / result.json["files"]["html"]).parent
    assert json.loads((folder / "experiment.json").read_text())["state"] == "finished"
    shutil.rmtree(folder)
