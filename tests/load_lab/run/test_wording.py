"""The lines of a run's table that only some loads have."""

from io import StringIO

import pytest
from rich.console import Console

from load_lab.metrics.windows import Bounds
from load_lab.results.breakpoint import BreakPoint
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


def operation(name, after, mean):
    return OperationResult(name=name, requests=9, mean_ms=mean, exceeded_after=after)


def test_slowest_of_those_that_exceeded_a_limit_at_once_is_named_as_by_profile_after():
    operations = [operation("GET /a/", 20, 10), operation("GET /b/", 24, 99)]
    late = operation("GET /late/", 26, 999)
    text = _text(by_operation=[*operations, late])
    assert "GET /b/, after 24 s (no p95; 0 of 9 failed); the slowest of 2 within 5 s" in text
    alone = _text(by_operation=[operations[0], late])
    assert "GET /a/, after 20 s" in alone
    assert "slowest of" not in alone


def test_commands_that_explain_a_run_have_its_testid():
    assert "lab profile" not in _text(testid="hold-1")
    point = BreakPoint(60.0, 66.0, 60.0, 20.0, ("p95 over 1000 ms",))
    operations = [operation("GET /a/", 20, 10)]
    text = _text(testid="breakpoint-1", break_point=point, by_operation=operations)
    assert "lab explain breakpoint-1, lab profile --after breakpoint-1" in text
