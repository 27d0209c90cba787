"""Checks of an overload, on synthetic runs."""

import io
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from load_lab.capacity.stack_capacity import StackCapacity
from load_lab.errors import LabError
from load_lab.metrics.plan import Plan, Stage
from load_lab.metrics.windows import Window
from load_lab.overload import overload, wording
from load_lab.soak.limits import MEMORY_LIMITS

_MIB = 1024**2
_SPIKE = (10.0, 30.0)


def _window(end, goodput=50.0, *, broken=False):
    return Window(end, 0, 0, 0, goodput, 0, 0, None, ("late",) if broken else ())


def _arm(**changed):
    defaults = {
        "shed": "on",
        "rate": 200,
        "goodput": 95.0,
        "goodput_share": 0.95,
        "unsent_share": 0.0,
        "accepted_p95_ms": 700.0,
        "seconds_to_normal": 2.0,
        "requests": 4000,
        "dropped": 0,
        "statuses": {"200": 1900, "503": 2100},
        "limited_by": "target",
        "cpu_speed": 12.0,
        "memory_bytes": dict.fromkeys(MEMORY_LIMITS, 100 * _MIB),
        "testid": "overload-on",
        "spike": _SPIKE,
        "windows": [],
    }
    return overload.Arm(**(defaults | changed))


def test_spike_is_stage_at_highest_rate():
    plan = Plan((Stage(10, 50, 50), Stage(20, 200, 200), Stage(20, 50, 50)), "requests")
    assert overload.spike_of(plan) == _SPIKE
    with pytest.raises(LabError, match="no overload"):
        overload.spike_of(Plan((Stage(20, 0, 200),), "requests"))


def test_goodput_is_mean_of_windows_within_spike():
    windows = [_window(12, 10), _window(15, 80), _window(30, 100), _window(31, 10)]
    assert overload.mean_in(windows, _SPIKE, "goodput") == 90
    assert overload.mean_in([_window(12)], _SPIKE, "goodput") == 0


@pytest.mark.parametrize(
    ("violations", "seconds"),
    [((), 0), ((35,), 1), ((35, 38), 4), ((40,), None)],
    ids=["at once", "late by one", "once more", "not before the end"],
)
def test_recovery_ends_with_last_limit_violation(violations, seconds):
    windows = [_window(end, broken=end in violations or end < 35) for end in range(5, 41)]
    assert overload.seconds_to_normal(windows, _SPIKE) == seconds


@pytest.mark.parametrize(
    ("changed", "passed"),
    [
        ({}, True),
        ({"goodput_share": 0.89}, False),
        ({"accepted_p95_ms": 2001.0}, False),
        ({"accepted_p95_ms": None}, False),
        ({"seconds_to_normal": 11.0}, False),
        ({"seconds_to_normal": None}, False),
        ({"unsent_share": 0.06}, False),
        ({"goodput": 182.0, "goodput_share": 1.82}, False),
        ({"statuses": {"200": 1900, "503": 2099, "500": 1}}, False),
        ({"statuses": {"200": 1900, "503": 2099, "0": 1}}, False),
        # A request that hung ends after the plan, by an answer or a timeout; k6 counts it.
        ({"requests": 4001}, False),
        ({"statuses": {}}, False),
        ({"memory_bytes": dict.fromkeys(MEMORY_LIMITS, 2048 * _MIB)}, False),
        ({"memory_bytes": {"nginx": 1}}, False),
    ],
)
def test_shedding_is_checked_against_each_limit(changed, passed):
    assert all(check.passed for check in overload.limit_checks(_arm(**changed))) == passed


_CAPACITY = StackCapacity(
    rate=181.2,
    headline="181/s (174 to 186), confirmed",
    outcome="confirmed",
    folder="results/capacity-1",
    cpu_speed=12.0,
)


@pytest.mark.parametrize(("speed", "has_warning"), [(12.0, False), (10.2, True), (None, False)])
def test_different_cpu_speed_in_search_is_reported(speed, has_warning):
    arms = [asdict(_arm(shed=shed, cpu_speed=speed)) for shed in ("on", "off")]
    document = {"scenario": "detail", "limit": asdict(_CAPACITY), "files": {}, "steal": 0.0}
    checks = [check.document() for check in overload.limit_checks(_arm())]
    output = _printed(wording.overload({**document, "arms": arms, "figures": checks}))
    assert (
        "1.18 times as fast in the search for the capacity as in LAB_SHED=o" in output
    ) == has_warning


def _printed(table):
    console = Console(width=200, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def test_capacity_of_generator_is_none_to_overload(monkeypatch):
    limit = replace(_CAPACITY, outcome="generator", headline="at least 900/s: the load generator")
    monkeypatch.setattr(overload, "find_stack_capacity", lambda *_: limit)
    with pytest.raises(LabError, match=r"at least 900/s.*must be the stronger side"):
        overload._limit(None, "list", SimpleNamespace(show_step=print))
