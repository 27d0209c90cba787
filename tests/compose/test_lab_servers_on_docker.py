"""The experiments' kinds of cells in containers: each proves who answers before it is loaded."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from lab.paths import ROOT

CELLS = Path(__file__).with_name("containers.toml")


@pytest.fixture(scope="module")
def up(lab_on_docker):
    """The lab knows the stack as its own: a run that found none would take it down at the end."""
    said = lab_on_docker("up", "--json")
    assert said.code == 0, said.err


@pytest.fixture(scope="module")
def measured(up, lab_on_docker):
    """The cells of one run, by their names; its folder goes afterwards."""
    said = lab_on_docker("run", str(CELLS), "--json")
    assert said.code == 0, said.err
    folder = (ROOT / said.json["files"]["html"]).parent
    yield {
        cell["name"]: cell
        for cell in (json.loads(file.read_text()) for file in folder.glob("cells/*/cell.json"))
    }
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", tomllib.loads(CELLS.read_text())["axis"][0]["positions"])
def test_every_kind_of_server_is_measured(measured, name):
    cell = measured[name]
    assert cell["state"] == "measured", cell
    assert cell["successes"] > 0
