"""The lab stops a ramp once its break is certain."""

import json

import pytest

from load_lab.load.k6 import run_k6
from load_lab.load.load import Load, new_testid
from load_lab.metrics.windows import Bounds
from load_lab.paths import ROOT
from load_lab.results.breakpoint import find_break, is_past_break
from load_lab.results.result import Result
from load_lab.run.early_stop import EarlyStop
from load_lab.run.single_run import run_once
from load_lab.targets.reference.app import ReferenceApp

# No response is that fast, so every window violates the limit.
IMPOSSIBLE = Bounds(p95_ms=0.001)


def _ramp(rate=20, duration="60s"):
    return Load("breakpoint", "list", rate=rate, duration=duration, testid=new_testid("breakpoint"))


@pytest.fixture(scope="module")
def stopped_run(stack):
    with pytest.MonkeyPatch.context() as patch:
        # Other tests fill the generator's CPUs, which would stop the ramp before its break.
        patch.setattr("load_lab.run.early_stop.generator_is_full", lambda *_: False)
        return run_once(stack, ReferenceApp(stack), _ramp(), IMPOSSIBLE)


def test_ramp_stops_soon_after_its_break(stopped_run):
    result = stopped_run.result
    assert result.outcome == "broke"
    # The first window is 5 s long; two more decide, the lab waits for three, and pushes are late.
    assert 10 <= result.stopped_after < 25
    assert result.windows[-1].end <= result.stopped_after
    assert result.recorded.complete


def test_requests_in_flight_at_the_stop_are_unfinished(stopped_run):
    result = stopped_run.result
    assert result.failed == 0
    assert result.successes == result.requests
    assert 0 <= result.unfinished <= 20
    document = json.loads((ROOT / stopped_run.files["result"]).read_text())
    assert (document["stopped_after"], document["unfinished"]) == (
        *(result.stopped_after, result.unfinished),
    )


def test_stopped_ramp_has_the_break_point_of_its_stored_windows(stopped_run):
    stored = Result.model_validate_json((ROOT / stopped_run.files["result"]).read_text())
    assert is_past_break(stored.windows)
    assert find_break(stored.windows).rate == stopped_run.result.break_point.rate


def test_ramp_without_early_stop_runs_to_its_end(stack):
    result = run_once(
        stack, ReferenceApp(stack), _ramp(duration="12s"), IMPOSSIBLE, early_stop=False
    ).result
    assert result.outcome == "broke"
    assert (result.stopped_after, result.unfinished) == (None, 0)
    assert result.windows[-1].end == 12


def test_ramp_runs_to_its_end_if_prometheus_is_unreachable(stack, tmp_path):
    load = _ramp(duration="12s")
    unreachable = EarlyStop(load.testid, "http://127.0.0.1:1", IMPOSSIBLE)
    run = run_k6(stack, ReferenceApp(stack), load, tmp_path, should_stop=unreachable)
    assert run.stopped_at is None
    assert run.ended - run.started > 12


def test_hold_never_stops_early(stack, tmp_path):
    load = Load("hold", "list", rate=5, duration="8s", testid=new_testid("hold"))
    calls = []
    run = run_k6(
        stack,
        ReferenceApp(stack),
        load,
        tmp_path,
        should_stop=lambda *arguments: calls.append(arguments),
    )
    assert run.stopped_at is None
    assert not calls
