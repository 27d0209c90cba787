"""The lines of a run's table that only some loads have."""

from io import StringIO

import pytest
from rich.console import Console

from load_lab.metrics.windows import Bounds
from load_lab.results.result import OperationResult, Result
from load_lab.run.single_run import SingleRun
from load_lab.run.wording import run
from load_lab.settings import load_settings

HOST = {"target_cpus": "0", "load_cpus": "1", "cpus": 2, "shared_cpus": False}


def _text(**fields):
    single_run = SingleRun(Result(**fields), {}, Bounds(), load_settings({}), HOST, None)
    console = Console(file=StringIO(), width=200)
    console.print(run(single_run))
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({}, []),
        (
            {"not_cached": {"GET /a/": "sets a cookie", "GET /b/": "has Vary: [x]"}},
            ["not cached", "GET /a/ sets a cookie; GET /b/ has Vary: [x]"],
        ),
        (
            {"by_operation": [OperationResult(name="GET /c/", requests=9, unstorable=4)]},
            ["answers changed", "GET /c/: 4 of 9 must not be stored, unlike the one before"],
        ),
        (
            {"by_operation": [OperationResult(name="GET /d/", requests=9, storable=9)]},
            ["answers changed", "GET /d/: 9 of 9 could be stored, unlike the one before"],
        ),
    ],
    ids=["nothing", "not cached", "no longer", "now"],
)
def test_cache_of_a_target_is_described(fields, lines):
    text = _text(**fields)
    assert all(line in text for line in lines)
    assert ("not cached" in text, "answers changed" in text) == (
        "not cached" in lines,
        "answers changed" in lines,
    )
