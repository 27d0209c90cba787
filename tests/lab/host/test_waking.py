"""What waking a CPU adds to a piece of work."""

import os

import pytest

from lab.host import waking as module
from lab.host.waking import wake_seconds


@pytest.fixture(autouse=True)
def _measured_anew():
    wake_seconds.cache_clear()
    yield
    wake_seconds.cache_clear()


def test_it_is_measured_once_on_given_cpus_and_affinity_is_restored(monkeypatch):
    before, cpu, affinities = os.sched_getaffinity(0), max(os.sched_getaffinity(0)), []
    work = module._cpu_seconds
    monkeypatch.setattr(
        module,
        "_cpu_seconds",
        lambda *some: affinities.append(os.sched_getaffinity(0)) or work(*some),
    )
    first = wake_seconds(frozenset({cpu}))
    assert 0 <= first < 0.02
    assert {frozenset(cpus) for cpus in affinities} == {frozenset({cpu})}
    calls = len(affinities)
    assert wake_seconds(frozenset({cpu})) == first
    assert len(affinities) == calls
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(("woken", "extra"), [(0.004, 0.001), (0.002, 0.0)])
def test_it_is_what_work_takes_longer_after_a_pause(monkeypatch, woken, extra):
    monkeypatch.setattr(module, "_cpu_seconds", lambda _, pause=0.0: woken if pause else 0.003)
    assert wake_seconds(frozenset(os.sched_getaffinity(0))) == pytest.approx(extra)
