"""The experiments' servers in containers: each cell proves who answers before it is loaded."""

import shutil

import pytest

from lab.paths import ROOT

CELLS = {
    "thread-sensitivity": (
        "random-row-lock/five/today/side-by-side-async",
        "random-row-lock/five/today/uvicorn-1-async",
    ),
    "channels-2016": ("highest/today-layer", "availability/today-granian"),
    "sync-vs-async": ("io-create/100ms/async-100",),
}


@pytest.fixture(scope="module")
def up(lab_on_docker):
    """The lab knows the stack as its own: a run that found none would take it down at the end."""
    said = lab_on_docker("up", "--json")
    assert said.code == 0, said.err


@pytest.mark.parametrize("experiment", CELLS)
def test_every_kind_of_server_is_measured(up, lab_on_docker, experiment):
    only = (part for name in CELLS[experiment] for part in ("--only", name))
    said = lab_on_docker("run", experiment, "--quick", *only, "--json")
    assert said.code == 0, said.err
    found = {cell["name"]: cell["state"] for cell in said.json["cells"]}
    assert found == dict.fromkeys(CELLS[experiment], "measured")
    assert all(cell["successes"] > 0 for cell in said.json["cells"])
    shutil.rmtree((ROOT / said.json["files"]["html"]).parent)
