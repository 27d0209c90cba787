"""`lab capacity` with the real k6 and Prometheus, on a server of known capacity."""

import json
import shutil

import pytest

from load_lab.calibrate.known_server import reference_server
from load_lab.calibrate.service_times import ServiceTime
from load_lab.capacity.measurement import CapacityOptions, run
from load_lab.capacity.timeline import Slo
from load_lab.capacity.wording import capacity as render
from load_lab.console import Console
from load_lab.machine.cpus import choose_cpus
from load_lab.paths import ROOT, project
from load_lab.targets.target import PlainServer

_EXPERIMENT = """schema_version = 1
title = "The capacity for details"
question = "How many details a second?"
source = "our own question"
repeats = 1
settings = { LAB_DETAIL = "fast" }
[[axis]]
name = "load"
[axis.positions.detail]
title = "hotel detail"
workload = { profile = "capacity", scenario = "detail", duration = "150s", bound_ms = 500 }
reset = "nothing"
[[claims]]
id = "c"
text = "More than one a second, and the interval contains the answer"
measures = { rate = "capacity('detail')", low = "capacity_low('detail')" }
holds = "1 < low <= rate"
[report]
compare = "capacity"
"""

# These tests load the machine for minutes.
pytestmark = pytest.mark.alone


def _measure(stack, service, slo, budget=150):
    with reference_server(service, choose_cpus(stack.settings()).target) as server:
        target = PlainServer(
            "calibration", server.url, "the calibration's server", {"reference": server.pid}
        )
        document = run(stack, target, CapacityOptions(slo, "list", budget=budget))
        server.stop()
    return document


def _text(document):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(render(document))
    return capture.get()


def test_queue_of_200_per_second_is_found(stack):
    document = _measure(stack, ServiceTime("queue", 5), Slo(0.3))
    # Twice what a quiet machine is allowed in make bench-capacity.
    assert document["rate"] == pytest.approx(200, rel=0.06), document["notes"]
    assert document["low"] < document["rate"] < document["high"]
    below, above = document["at_capacity"], document["limit"]
    assert below["passed"]
    assert not above["passed"]
    assert below["rate"] < above["rate"]
    # Nothing is late below it, and the counts are those of the hold.
    assert below["answered"] == pytest.approx(below["rate"] * below["seconds"], rel=0.05)
    assert below["late"] <= 0.05 * below["answered"]
    assert below["memory_bytes"] > 2**20
    assert sum(hold["seconds"] for hold in document["holds"]) < document["seconds"]
    assert document["headline"] in _text(document)
    assert all((ROOT / path).exists() for path in document["files"].values())
    shutil.rmtree(ROOT / document["files"]["folder"])


def test_slo_that_a_single_request_exceeds_has_no_rate(stack):
    document = _measure(stack, ServiceTime("fixed", 80), Slo(0.05))
    assert document["outcome"] == "too_slow"
    assert document["headline"].startswith("no rate meets this SLO: one request alone takes 8")
    assert document["holds"] == []
    assert "no rate meets this SLO" in _text(document)
    shutil.rmtree(ROOT / document["files"]["folder"])


def test_experiment_searches_the_capacity_of_a_cell(lab, stack, tmp_path):
    file = tmp_path / "details.toml"
    file.write_text(_EXPERIMENT)
    result = lab("run", str(file), "--json")
    assert result.code == 0, result.err + result.out
    run = max(project().results.glob("details-*"))
    (cell_file,) = run.glob("cells/*/cell.json")
    cell = json.loads(cell_file.read_text())
    # The search itself is stored with the cell, and its answer is the cell's.
    (search_file,) = cell_file.parent.glob("capacity-*/result.json")
    search = json.loads(search_file.read_text())
    assert cell["capacity"]["rate"] == search["rate"]
    assert cell["verdict"] == search["headline"]
    # On a machine that is disturbed all the time, no hold may have passed.
    passed = search["at_capacity"]
    assert cell["successes"] == (passed["answered"] - passed["failed"] if passed else 0)
    assert sum(cell["builds"].values()) > cell["successes"]
    report = lab("report", run.name, "--json")
    assert report.code == 0, report.err
    (reported,) = report.json["cells"]
    assert reported["capacity"] == cell["capacity"]
    text = (run / "report.md").read_text()
    assert "**holds (one repeat)**" in text
    assert "capacity, at least" in text
    assert "One repeat: how far the ratios are by chance is not known." in text
    shutil.rmtree(run)
