"""Every kind of experiment cell in containers; each is verified before its load."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from load_lab.paths import ROOT

CELLS = Path(__file__).with_name("containers.toml")
# Three cells per run: a cell takes two minutes, most of it in compose, and a run adds a minute.
QUICK = ("beside", "layer", "sockets")
# Held by quicker tests too: caches by test_lab_on_docker.py, async views by the cell "layer", a
# delay by test_compose_stack.py.
SLOW = ("cached", "async-views", "delayed")


def test_triples_contain_every_cell():
    names = tomllib.loads(CELLS.read_text())["axis"][0]["positions"]
    assert sorted(names) == sorted(QUICK + SLOW)


@pytest.mark.parametrize(
    "triple", [QUICK, pytest.param(SLOW, marks=pytest.mark.full)], ids="-".join
)
def test_every_kind_of_server_is_measured(up, lab_on_docker, triple):
    flags = (part for name in triple for part in ("--only", name))
    result = lab_on_docker("run", str(CELLS), *flags, "--json")
    assert result.code == 0, result.err
    folder = (ROOT / result.json["files"]["html"]).parent
    cells = [json.loads(file.read_text()) for file in folder.glob("cells/*/cell.json")]
    assert {cell["name"]: cell["state"] for cell in cells} == dict.fromkeys(triple, "measured")
    assert all(cell["successes"] > 0 for cell in cells)
    shutil.rmtree(folder)
