"""`lab capacity` with the real k6 and Prometheus, on a server of known capacity."""

import shutil

import pytest

from lab.analysis.capacity.course import Slo
from lab.cli.output.capacity import capacity as render
from lab.console import Console
from lab.host.cpus import choose_cpus
from lab.paths import ROOT
from lab.suites.calibration.reference import reference_server
from lab.suites.calibration.service_times import ServiceTime
from lab.suites.capacity.command import CapacityOptions, run
from lab.targets.target import PlainServer

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
