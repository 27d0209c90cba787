"""CPU speed: the CPU time of a fixed amount of work, on given CPUs."""

import os

import pytest

from load_lab.machine import noise as module
from load_lab.machine.noise import cpu_speed, extremes


def test_work_runs_on_given_cpus_and_affinity_is_restored(monkeypatch):
    cpu, affinities = min(os.sched_getaffinity(0)), list[set[int]]()
    before, work = os.sched_getaffinity(0), module._cpu_seconds
    monkeypatch.setattr(
        module, "_cpu_seconds", lambda: affinities.append(os.sched_getaffinity(0)) or work()
    )
    assert cpu_speed({cpu}, seconds=0.05) > 0
    assert {frozenset(cpus) for cpus in affinities} == {frozenset({cpu})}
    assert os.sched_getaffinity(0) == before


def test_speed_is_turns_per_second_of_cpu_time(monkeypatch):
    monkeypatch.setattr(module, "_cpu_seconds", lambda: 0.02)
    assert cpu_speed(os.sched_getaffinity(0), seconds=0) == pytest.approx(5.0)


def test_extremes_have_names_and_skip_unmeasured_values():
    result = extremes([(10.0, "a"), (None, "b"), (12.0, "c"), (8.0, "d")])
    assert (result.lowest, result.slowest, result.highest, result.fastest) == (8.0, "d", 12.0, "c")
    assert result.ratio == 1.5
    assert extremes([(None, "a")]) is None
