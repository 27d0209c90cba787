"""The experiments' kinds of cells in containers: each proves who answers before it is loaded."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from lab.paths import ROOT

CELLS = Path(__file__).with_name("containers.toml")
# Three of a run: a cell takes a minute, most of it compose's, and what is around them one, too.
TRIPLES = [("cached", "beside", "layer"), ("async-views", "sockets", "delayed")]


@pytest.fixture(scope="module")
def up(lab_on_docker):
    """The lab knows the stack as its own: a run that found none would take it down at the end."""
    said = lab_on_docker("up", "--json")
    assert said.code == 0, said.err


def test_every_cell_is_measured_below():
    named = tomllib.loads(CELLS.read_text())["axis"][0]["positions"]
    assert sorted(named) == sorted(name for triple in TRIPLES for name in triple)


@pytest.mark.parametrize("triple", TRIPLES, ids="-".join)
def test_every_kind_of_server_is_measured(up, lab_on_docker, triple):
    only = (part for name in triple for part in ("--only", name))
    said = lab_on_docker("run", str(CELLS), *only, "--json")
    assert said.code == 0, said.err
    folder = (ROOT / said.json["files"]["html"]).parent
    cells = [json.loads(file.read_text()) for file in folder.glob("cells/*/cell.json")]
    assert {cell["name"]: cell["state"] for cell in cells} == dict.fromkeys(triple, "measured")
    assert all(cell["successes"] > 0 for cell in cells)
    shutil.rmtree(folder)
