"""Answers of `lab capacity`, and what it reads from a load."""

import math

import pytest

from load_lab.capacity import loads, measurement
from load_lab.capacity.judgement import Judgement
from load_lab.capacity.outcomes import Alone, Capacity, Hold
from load_lab.capacity.timeline import Second, Slo
from load_lab.capacity.wording import capacity as render
from load_lab.console import Console
from load_lab.errors import Interrupted, LabError
from load_lab.machine.cpu_use import CpuUse

ALONE = Alone(1.2, 3, late=3)
SLO = Slo(0.3)


@pytest.mark.parametrize(
    ("capacity", "text"),
    [
        (Capacity("confirmed", 181.2, 174, 186, ALONE), "181/s (174 to 186), confirmed"),
        (Capacity("unconfirmed", 9.1, 7, 12, ALONE), "9.1/s (7.0 to 12.0), not confirmed"),
        (
            Capacity("generator", 5100, 5100, math.inf, ALONE),
            "at least 5,100/s: the load generator",
        ),
        (
            Capacity("too_slow", None, 0, 0, ALONE),
            "no rate meets this SLO: one request alone takes 1,200 ms",
        ),
        (
            Capacity("too_slow", None, 0, 0, Alone(0.004, 700, late=1, failed=581)),
            "no rate meets this SLO: 83% of single requests failed",
        ),
        (
            Capacity("too_slow", None, 0, 0, Alone(0.02, 100, late=20)),
            "no rate meets this SLO: 20% of single requests took longer than 300 ms",
        ),
    ],
)
def test_headline_is_the_answer(capacity, text):
    assert measurement.headline(capacity, SLO).startswith(text)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(LabError("The target is gone."), "failed"), (Interrupted("Stopped."), "interrupted")],
)
def test_search_without_an_answer_can_be_shown(error, outcome):
    hold = Hold(100.0, [], Judgement(True))
    document = {
        **measurement._no_answer([hold], error),
        **{"slo": {"p95_ms": 300, "errors": 0.01}, "arrivals": "evenly spaced"},
        **{"holds": [{}], "files": {"folder": "results/x"}},
    }
    assert document["outcome"] == outcome
    console = Console(width=120)
    with console.capture() as capture:
        console.print(render(document))
    assert f"no answer: the search ended after 1 holds: {error}" in capture.get()
    assert "results/x" in capture.get()


def _use(at, **changes):
    return CpuUse(at, **({"target": 0.5, "load": 0.3} | changes))


@pytest.mark.parametrize(
    ("cpu", "disturbed"),
    [
        ([_use(at) for at in (11, 12, 13)], False),
        ([_use(at) for at in (11, 12, 14.5)], True),
        ([_use(11), _use(12, steal=0.3), _use(13)], True),
        ([_use(at, others=0.5) for at in (11, 12, 13)], True),
        # Before the load.
        ([_use(8, steal=0.9), _use(11), _use(12)], False),
    ],
)
def test_machine_disturbs_a_load(cpu, disturbed):
    assert loads.is_disturbed(cpu, 10.0, foreign=True) is disturbed


def test_other_programs_may_be_a_target_that_is_not_observed():
    cpu = [_use(at, others=0.5) for at in (11, 12, 13)]
    assert not loads.is_disturbed(cpu, 10.0, foreign=False)


def _second(rate, late):
    return Second(rate, rate, late, 0.0, 0.02 * rate, 2.0, 0.0)


def test_ramp_is_late_from_the_rate_after_which_it_stays_so():
    seconds = [_second(100, 50), _second(110, 0), _second(120, 30), _second(130, 90)]
    assert loads._late_from(seconds, SLO) == 120
    assert loads._late_from(seconds[:2], SLO) is None
    assert loads._is_saturated(seconds[2:], SLO) is False
    assert loads._is_saturated([_second(120, 40), _second(130, 90)], SLO) is True


def test_failures_that_the_slo_allows_are_not_late():
    seconds = [Second(100, 100, 0.0, 8.0, 2.0, 2.0, 0.0)] * 3
    assert loads._late_from(seconds, Slo(0.3, 0.1)) is None
    assert loads._late_from(seconds, Slo(0.3, 0.01)) == 100


def test_variation_is_that_of_the_response_times():
    assert loads._variation({(0.1, 0.1): 10, (0.3, 0.3): 10}) == pytest.approx(0.5)
    assert loads._variation({(0.1, 0.1): 10}) == pytest.approx(0)
