"""Stored runs are read back."""

import json

import pytest

from load_lab.errors import LabError
from load_lab.experiments.run_folder import CellRun, Store
from tests.support.samples.cells import cell

STORED = cell("naive/none/detail")


def _store_of(tmp_path, document):
    folder = tmp_path / "cells/001-x.r1"
    folder.mkdir(parents=True)
    (folder / "cell.json").write_text(json.dumps(document))
    return Store(tmp_path)


def test_written_cell_is_read_back(tmp_path):
    run = CellRun.of(STORED)
    store = Store(tmp_path)
    store.write_cell(store.cell_folder(1, run.name, run.repeat), run)
    assert store.cells() == [run]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("requests", "many", "result.requests"), ("windows", [{}], "result.windows.0.end")],
)
def test_invalid_cell_file_is_one_message(tmp_path, name, value, message):
    store = _store_of(tmp_path, STORED | {name: value})
    with pytest.raises(LabError, match=f"can't be read as a result of `lab run` .{message}"):
        store.cells()
