"""Checks of an overload, on synthetic runs."""

import io
from contextlib import nullcontext
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from load_lab.capacity.target_capacity import TargetCapacity
from load_lab.errors import LabError
from load_lab.machine.observation import Signals
from load_lab.metrics.plan import Plan, Stage
from load_lab.metrics.windows import Window
from load_lab.overload import overload, wording
from load_lab.soak.limits import memory_checks
from load_lab.targets.reference.growth import MEMORY_LIMITS
from load_lab.targets.subject import AS_IS, Running

_MIB = 1024**2
_SPIKE = (10.0, 30.0)


def _window(end, goodput=50.0, *, broken=False):
    return Window(end, 0, 0, 0, goodput, 0, 0, None, ("late",) if broken else ())


def _arm(**changed):
    defaults = {
        "name": "LAB_SHED=on",
        "rate": 200,
        "goodput": 95.0,
        "goodput_share": 0.95,
        "unsent_share": 0.0,
        "accepted_p95_ms": 700.0,
        "slowest_ms": 900.0,
        "seconds_to_normal": 2.0,
        "calm_seconds": 20.0,
        "waiting": 30.0,
        "most_waiting": 32.0,
        "restarted": [],
        "requests": 4000,
        "dropped": 0,
        "statuses": {"200": 1900, "503": 2100},
        "limited_by": "target",
        "cpu_speed": 12.0,
        "memory_bytes": dict.fromkeys(MEMORY_LIMITS, 100 * _MIB),
        "server_memory": {"before": 90 * _MIB, "at most": 120 * _MIB, "at the end": 100 * _MIB},
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
    arm = _arm(**changed)
    checks = [*overload.shedding_checks(arm), *memory_checks(MEMORY_LIMITS, arm.memory_bytes)]
    assert all(check.passed for check in checks) == passed


@pytest.mark.parametrize(
    ("changed", "violated"),
    [
        # A queue that is worked off after twice its time.
        ({"goodput": 2.0, "goodput_share": 0.02, "seconds_to_normal": 41.0}, []),
        ({"seconds_to_normal": None}, [overload.RECOVERY_LABEL]),
        ({"seconds_to_normal": 81.0}, [overload.RECOVERY_LABEL]),
        ({"goodput": 182.0}, [overload.SUCCESS_LABEL]),
        ({"restarted": ["target"]}, ["services whose main process ended"]),
        # What an app answers is its own.
        ({"statuses": {"500": 4000}, "accepted_p95_ms": None, "memory_bytes": {}}, []),
    ],
)
def test_any_target_has_to_get_over_an_overload(changed, violated):
    checks = overload.recovery_checks(_arm(**changed))
    assert [check.what for check in checks if not check.passed] == violated


def test_waiting_requests_are_those_in_the_server_and_its_backlog():
    seen = [Signals(at, 10, in_flight=2.0, queued=float(at)) for at in (99, 101, 102, 110)]
    hidden = Signals(103, 10)
    assert overload.waiting_requests([*seen, hidden], 100, 109) == [103, 104]


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (
            {"goodput_share": 0.02, "most_waiting": 1234.0, "slowest_ms": 10_240.0},
            "the queue grew to 1,234 requests; answers took up to 10.2 s; goodput was 2% of the "
            "capacity; 2 s or less after the overload it answered in time again.",
        ),
        (
            {
                "most_waiting": None,
                "seconds_to_normal": None,
                "restarted": ["target"],
                "dropped": 9,
            },
            "the queue is not visible from here; answers took up to 0.9 s; goodput was 95% of the "
            "capacity; 20 s after the overload it did not yet answer in time; the main process of "
            "target ended; k6 could not send 9 more, since no virtual user was free.",
        ),
        (
            {"goodput": 190.0},
            "no overload: 95% of it was answered well, so the capacity is higher than the search "
            "found.",
        ),
    ],
    ids=["a queue", "not over it", "no overload"],
)
def test_what_happened_is_said_plainly(changed, text):
    assert wording.what_happened(asdict(_arm(**changed))) == text


_CAPACITY = TargetCapacity(
    rate=181.2,
    headline="181/s (174 to 186), confirmed",
    outcome="confirmed",
    folder="results/capacity-1",
    cpu_speed=12.0,
)


@pytest.mark.parametrize(("speed", "has_warning"), [(12.0, False), (10.2, True), (None, False)])
def test_different_cpu_speed_in_search_is_reported(speed, has_warning):
    arms = [asdict(_arm(name=f"LAB_SHED={shed}", cpu_speed=speed)) for shed in ("on", "off")]
    document = {"scenario": "detail", "limit": asdict(_CAPACITY), "files": {}, "steal": 0.0}
    checks = [check.document() for check in overload.shedding_checks(_arm())]
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
    monkeypatch.setattr(overload, "find_target_capacity", lambda *_: limit)
    subject = _subject({"backend": 1})
    with pytest.raises(LabError, match=r"at least 900/s.*must be the stronger side"):
        overload._limit(subject, AS_IS, SimpleNamespace(show_step=print))


def test_processes_that_are_not_visible_are_reported_before_the_search():
    # The lab's own cache in front of it does not count.
    with pytest.raises(LabError, match="The processes of shop are not visible from here, so its"):
        overload._limit(_subject({"cache": 1}), AS_IS, SimpleNamespace(show_step=print))


def _subject(pids):
    running = Running(None, None, SimpleNamespace(name="shop"), lambda: pids)
    return SimpleNamespace(
        running=lambda _: nullcontext(running), scenario=None, name="shop", memory_limits={}
    )
