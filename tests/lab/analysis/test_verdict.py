"""Who is to blame for a break: the target, or the load generator."""

from dataclasses import replace

import pytest

from lab.analysis.completeness import Completeness
from lab.analysis.result import PrometheusRange, Result, WebSockets
from lab.analysis.verdict import Verdict, judge
from lab.analysis.windows import Bounds, Counters, windows
from lab.host.sampler import CpuUse
from lab.load.plan import Plan, Stage

PLAN = Plan((Stage(60, 0, 60),), "requests")
ALL = Completeness(k6=7, prometheus=7, seconds=60, seconds_missing=0)
LOAD = PrometheusRange(start=0, end=60)


def _result(
    load_cpu: float,
    target_cpu: float = 0.99,
    *,
    dropped: float = 0,
    slow_from: float = 30,
    **metrics,
) -> Result:
    """A ramp's metrics, without a verdict."""

    def at(moment: float) -> Counters:
        answers = PLAN.arrivals(moment)
        late = moment >= slow_from
        return Counters(answers, 0, answers, dropped * moment, 4000 if late else 20)

    uses = [CpuUse(float(second), target_cpu, load_cpu) for second in range(61)]
    found = windows(PLAN, at, Bounds())
    named = {"profile": "breakpoint", "windows": found, "recorded": ALL, "prometheus": LOAD}
    return Result(**{**named, "cpu": uses, **metrics})


def _judge(result: Result) -> Verdict:
    return judge(result, PLAN, Bounds())


def test_the_target_is_the_limit_when_the_generator_had_room():
    verdict = _judge(_result(0.5))
    assert (verdict.outcome, verdict.limited_by) == ("broke", "target")
    assert "broke at 27.5 requests/s" in verdict.verdict


def test_a_break_point_is_rounded_once_so_its_verdict_and_its_document_say_one_rate():
    """24.254 is 24.3 in a verdict, and 24.25 in a document, which is 24.2 to who rounds that."""
    rates = {"achieved": 24.254, "offered": 24.254, "goodput": 24.254, "error_ratio": 0}
    found = [replace(window, **rates) for window in _result(0.5).windows]
    verdict = _judge(_result(0.5, windows=found))
    found = verdict.break_point
    assert found is not None
    assert (found.rate, found.goodput, found.offered) == (24.25, 24.25, 24.25)
    assert "broke at 24.2 requests/s (goodput 24.2/s, offered 24.2/s)" in verdict.verdict


def test_a_full_generator_is_the_limit_whatever_else_happened():
    assert _judge(_result(0.95, dropped=1)).limited_by == "generator_cpu"


@pytest.mark.parametrize(("target", "limit"), [(0.5, "generator_cpu"), (0.97, "target")])
def test_a_nearly_full_generator_is_the_limit_unless_the_target_was_busier(target, limit):
    assert _judge(_result(0.83, target)).limited_by == limit


def test_dropped_iterations_with_an_idle_generator_mean_too_few_users():
    assert _judge(_result(0.5, dropped=1)).limited_by == "vu_cap"


def test_what_held_was_limited_by_nothing_and_names_its_top_rate():
    verdict = _judge(_result(0.5, slow_from=99))
    assert (verdict.outcome, verdict.limited_by) == ("held", "none")
    assert "60.0 requests/s" in verdict.verdict
    assert verdict.verdict.endswith("achieved 95%)")


def test_late_limit_violation_is_reported():
    """Not "no limit was exceeded": the load's end, and not the target, is why nothing broke."""
    verdict = _judge(_result(0.5, slow_from=59))
    assert verdict.outcome == "held"
    assert "no limit was exceeded (" in verdict.verdict
    said = "in 3 windows in a row; 2 of 56 windows exceeded one, the last at 60 s of 60 s: p95 4000"
    assert said in verdict.verdict


@pytest.mark.parametrize(("failed", "outcome"), [(False, "passed"), (True, "failed")])
def test_a_smoke_test_passes_or_fails_by_its_thresholds(failed, outcome):
    smoke = Result(profile="smoke", requests=7)
    verdict = judge(smoke, None, Bounds(), thresholds_failed=failed)
    assert verdict.outcome == outcome
    assert "7 requests" in verdict.verdict


@pytest.mark.parametrize(("busy", "limit"), [(0.95, "generator_cpu"), (0.5, "none")])
def test_a_closed_load_is_a_lower_bound_when_the_generator_was_full(busy, limit):
    verdict = judge(_result(busy, 0.8, profile="closed", requests=900), None, Bounds())
    assert (verdict.outcome, verdict.limited_by) == ("measured", limit)
    assert ("limited by the load generator" in verdict.verdict) == (busy > 0.9)


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (Completeness(70, None, 60, 60), "Prometheus does not answer; k6 counted 70 requests"),
        (
            Completeness(70, 70, 60, 8),
            "has 70 of 70 requests, setup's included, and lacks 8 of 60 s",
        ),
    ],
)
def test_what_prometheus_lacks_a_part_of_is_not_judged(there, said):
    verdict = _judge(_result(0.5, recorded=there))
    assert (verdict.outcome, verdict.break_point) == ("unrecorded", None)
    assert said in verdict.verdict
    assert "No break point can be found" in verdict.verdict


@pytest.mark.parametrize(("busy", "limit"), [(0.95, "generator_cpu"), (0.5, "none")])
def test_a_generator_that_is_too_full_to_push_is_the_limit(busy, limit):
    there = Completeness(70, 70, 60, 8)
    verdict = _judge(_result(busy, recorded=there))
    assert (verdict.outcome, verdict.limited_by) == ("unrecorded", limit)
    assert ("limited by the load generator" in verdict.verdict) == (limit == "generator_cpu")


def test_a_count_that_differs_alone_does_not_void_the_verdict():
    there = Completeness(70, 69, 60, 0)
    assert _judge(_result(0.5, recorded=there)).outcome == "broke"
    assert not there.complete


@pytest.mark.parametrize(
    ("counted", "outcome"),
    [
        ({"expected": 50, "lost": 0}, "held"),
        ({"expected": 50, "lost": 1}, "failed"),
        ({"expected": 50, "lost": 0, "doubled": 1}, "failed"),
        ({"expected": 50, "lost": 0, "closed": 1}, "failed"),
        # Nothing was proved.
        ({"expected": 0, "lost": 0}, "failed"),
    ],
)
def test_what_held_has_failed_all_the_same_when_a_message_did_not_come_once(counted, outcome):
    verdict = _judge(_result(0.5, slow_from=99, websockets=WebSockets(**counted)))
    assert verdict.outcome == outcome
    assert f"{counted['lost']} lost" in verdict.verdict
