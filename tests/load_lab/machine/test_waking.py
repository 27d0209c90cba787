"""What waking a CPU adds to a piece of work, and how long a measurement is used."""

import json
import os
import time
from pathlib import Path

import pytest

from load_lab.machine import waking as module
from load_lab.machine.waking import wake_seconds

CPUS = frozenset(os.sched_getaffinity(0))
DAMAGED = (b"", b"\xff", b"[1]", b"{}", b'[{"boot": "x"}]', b"[" * 100_000)


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    """Return the file of the stored measurements, which does not exist yet."""
    monkeypatch.setenv("LAB_STATE_DIR", str(tmp_path))
    wake_seconds.cache_clear()
    yield tmp_path / "waking.json"
    wake_seconds.cache_clear()


@pytest.fixture
def machine(monkeypatch):
    """Replace the measurements; return the values of the next ones, and the CPU speed."""
    values = {"seconds": [0.001, 0.009, 0.002, 0.007], "speed": 10.0}
    monkeypatch.setattr(module, "_measure", lambda _cpus: values["seconds"].pop(0))
    monkeypatch.setattr(module, "cpu_speed", lambda _cpus, _seconds: values["speed"])
    return values


def _next_command(cpus=CPUS):
    wake_seconds.cache_clear()
    return wake_seconds(cpus)


def test_it_is_measured_on_given_cpus_and_affinity_is_restored(monkeypatch):
    before, cpu, affinities = os.sched_getaffinity(0), max(CPUS), []
    work = module._cpu_seconds
    monkeypatch.setattr(
        module,
        "_cpu_seconds",
        lambda *some: affinities.append(os.sched_getaffinity(0)) or work(*some),
    )
    first = wake_seconds(frozenset({cpu}))
    assert 0 <= first < 0.02
    assert {frozenset(cpus) for cpus in affinities} == {frozenset({cpu})}
    assert wake_seconds(frozenset({cpu})) == first
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(("woken", "extra"), [(0.004, 0.001), (0.002, 0.0)])
def test_it_is_what_work_takes_longer_after_a_pause(monkeypatch, woken, extra):
    monkeypatch.setattr(module, "_cpu_seconds", lambda _, pause=0.0: woken if pause else 0.003)
    assert wake_seconds(CPUS) == pytest.approx(extra)


def test_three_commands_measure_and_later_ones_use_the_median(machine):
    assert [_next_command() for _ in range(5)] == pytest.approx([0.001, 0.005, 0.002, 0.002, 0.002])
    assert machine["seconds"] == [0.007]


def _edit(file, **values):
    file.write_text(json.dumps([each | values for each in json.loads(file.read_text())]))


@pytest.mark.parametrize(
    "values",
    [
        {"boot": "another"},
        {"cpus": [max(CPUS) + 1]},
        {"cpu_speed": 11.6},
        {"cpu_speed": 8.6},
        {"measured_at": time.time() - 24 * 3600},
        {"measured_at": time.time() + 3600},
    ],
    ids=["boot", "CPUs", "faster", "slower", "yesterday", "tomorrow"],
)
def test_other_conditions_are_measured_anew(machine, file, values):
    for _ in range(3):
        _next_command()
    _edit(file, **values)
    assert _next_command() == 0.007


def test_similar_cpu_speed_counts_as_the_same(machine):
    for _ in range(3):
        _next_command()
    machine["speed"] = 11.4
    assert _next_command() == 0.002


@pytest.mark.parametrize("content", DAMAGED)
def test_damaged_file_is_replaced(machine, file, content):
    file.write_bytes(content)
    assert [_next_command() for _ in range(4)] == pytest.approx([0.001, 0.005, 0.002, 0.002])


@pytest.mark.parametrize("name", ["waking.json", "waking.new"])
def test_file_that_cannot_be_read_or_written_is_no_error(machine, file, name):
    Path(file.parent / name).mkdir()
    assert [_next_command() for _ in range(2)] == [0.001, 0.009]
