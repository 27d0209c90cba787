"""Time that the hypervisor took: measured, kept in every result, and told where it matters."""

from collections import namedtuple

import pytest

from lab.host import noise
from lab.host.noise import StealMeter, mean_share

Times = namedtuple("Times", "user idle steal guest")


def test_the_share_is_of_what_passed_since_the_last_look(monkeypatch):
    looks = iter([Times(10, 80, 10, 5), Times(10, 95, 15, 5), Times(20, 95, 15, 9)])
    monkeypatch.setattr(noise.psutil, "cpu_times", lambda: next(looks))
    meter = StealMeter()
    assert meter.share() == pytest.approx(5 / 20)
    assert meter.share() == 0


def test_some_cpus_have_a_share_of_their_own(monkeypatch):
    one, other, later = Times(10, 80, 10, 0), Times(10, 90, 0, 0), Times(20, 170, 30, 0)
    looks = iter([[one, other], [one, later]])
    monkeypatch.setattr(noise.psutil, "cpu_times", lambda percpu: next(looks))
    assert StealMeter({1}).share() == pytest.approx(30 / 120)


def test_a_system_that_knows_no_steal_has_none(monkeypatch):
    monkeypatch.setattr(noise.psutil, "cpu_times", lambda: namedtuple("T", "user idle")(1, 2))
    assert StealMeter().share() == 0


def test_a_run_has_the_mean_of_its_seconds():
    assert mean_share([0.0, 0.1, 0.2]) == 0.1
    assert mean_share([]) == 0
