"""Steal time: measured, stored in every result, and reported when it is high."""

from collections import namedtuple

import pytest

from load_lab.machine import noise
from load_lab.machine.noise import StealMeter, mean_share

Times = namedtuple("Times", "user idle steal guest")


def test_steal_share_covers_time_since_last_call(monkeypatch):
    samples = iter([Times(10, 80, 10, 5), Times(10, 95, 15, 5), Times(20, 95, 15, 9)])
    monkeypatch.setattr(noise.psutil, "cpu_times", lambda: next(samples))
    meter = StealMeter()
    assert meter.share() == pytest.approx(5 / 20)
    assert meter.share() == 0


def test_steal_meter_counts_only_selected_cpus(monkeypatch):
    one, other, later = Times(10, 80, 10, 0), Times(10, 90, 0, 0), Times(20, 170, 30, 0)
    samples = iter([[one, other], [one, later]])
    monkeypatch.setattr(noise.psutil, "cpu_times", lambda percpu: next(samples))
    assert StealMeter({1}).share() == pytest.approx(30 / 120)


def test_system_without_steal_time_has_zero_share(monkeypatch):
    monkeypatch.setattr(noise.psutil, "cpu_times", lambda: namedtuple("T", "user idle")(1, 2))
    assert StealMeter().share() == 0


def test_run_has_mean_steal_share_of_its_seconds():
    assert mean_share([0.0, 0.1, 0.2]) == 0.1
    assert mean_share([]) == 0
