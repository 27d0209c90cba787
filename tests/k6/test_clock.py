"""The machine's clock is set during a run, so the times of its samples do not match."""

import time

import pytest

from load_lab.load.load import Load, new_testid
from load_lab.metrics.windows import Bounds
from load_lab.results.completeness import Completeness
from load_lab.run.single_run import run_once
from load_lab.targets.reference.app import ReferenceApp


@pytest.fixture
def set_clock_later(monkeypatch):
    """Return a function that sets the clock of this process by `jump` seconds, `after` seconds
    later.
    """
    real, begin = time.time, time.monotonic()

    def set_later(jump, after):
        monkeypatch.setattr(
            time, "time", lambda: real() + (jump if time.monotonic() - begin > after else 0)
        )

    return set_later


# A minute: Prometheus stores the signals of this process with its clock, and refuses the samples of
# later tests if they are older by more than 5 minutes.
@pytest.mark.parametrize(("jump", "text"), [(60, "forward by 60.0 s"), (-2, "back by 2.0 s")])
def test_run_in_which_the_clock_was_set_is_not_judged(jump, text, stack, set_clock_later):
    load = Load("hold", "list", rate=5, duration="10s", testid=new_testid("hold"))
    set_clock_later(jump, after=6)
    result = run_once(stack, ReferenceApp(stack), load, Bounds()).result
    assert result.outcome == "unrecorded"
    assert f"the machine's clock was set {text} during the run" in result.verdict
    assert result.windows == []
    assert result.requests >= 49


@pytest.mark.parametrize(("jump", "readable"), [(0.09, True), (0.2, False), (-0.2, False)])
def test_only_a_jump_makes_a_record_unreadable(jump, readable):
    assert Completeness(10, 10, 60, 0, clock_jump=jump).readable is readable
