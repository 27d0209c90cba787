"""The cause of a break: the target or the load generator."""

from dataclasses import replace

import pytest

from load_lab.diagnosis import causes
from load_lab.diagnosis.diagnosis import diagnose
from load_lab.diagnosis.reading import facts_of
from load_lab.machine.cpu_use import CpuUse
from load_lab.machine.observation import Signals
from load_lab.metrics.plan import Plan, Stage
from load_lab.metrics.windows import Bounds, Counters, windows
from load_lab.results.completeness import Completeness, GeneratorFault
from load_lab.results.limit import Limit
from load_lab.results.result import GeneratorResult, PrometheusRange, Result, TargetName, WebSockets
from load_lab.results.verdict import Verdict, verdict_of
from load_lab.run.measurement import with_bottleneck
from load_lab.settings import load_settings

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
    """Return a ramp's metrics, without a verdict."""

    def at(moment: float) -> Counters:
        answers = PLAN.arrivals(moment)
        late = moment >= slow_from
        return Counters(answers, 0, answers, dropped * moment, 4000 if late else 20)

    uses = [CpuUse(float(second), target_cpu, load_cpu) for second in range(61)]
    run_windows = windows(PLAN, at, Bounds())
    defaults = {
        "profile": "breakpoint",
        "windows": run_windows,
        "recorded": ALL,
        "prometheus": LOAD,
    }
    return Result(**{**defaults, "cpu": uses, **metrics})


def _judge(result: Result) -> Verdict:
    return verdict_of(result, PLAN, Bounds())


def test_target_is_limit_when_generator_had_spare_cpu():
    verdict = _judge(_result(0.5))
    assert (verdict.outcome, verdict.limited_by) == ("broke", "target")
    assert "broke at 27.5 requests/s" in verdict.verdict


def test_generator_is_limit_of_a_ramp_that_was_stopped_without_a_break():
    # Full only at its end, so its mean says nothing.
    result = _result(0.5, slow_from=99, stopped_after=60)
    verdict = _judge(result)
    assert (verdict.outcome, verdict.limited_by) == ("held", "generator_cpu")
    assert "limited by the load generator's CPU" in verdict.verdict
    judged = result.model_copy(update=vars(verdict))
    facts = facts_of(judged, load_settings({}), Bounds(), {})
    assert diagnose(facts).cause == causes.GENERATOR.name
    held = judged.model_copy(update={"stopped_after": None})
    assert facts_of(held, load_settings({}), Bounds(), {}) is None


def test_verdict_and_document_show_same_rounded_rate():
    """Separate rounding of 24.254 gives 24.3 in the verdict; rounding 24.25 again gives 24.2."""
    rates = {"achieved": 24.254, "offered": 24.254, "goodput": 24.254, "error_ratio": 0}
    run_windows = [replace(window, **rates) for window in _result(0.5).windows]
    verdict = _judge(_result(0.5, windows=run_windows))
    point = verdict.break_point
    assert point is not None
    assert (point.rate, point.goodput, point.offered) == (24.25, 24.25, 24.25)
    assert "broke at 24.2 requests/s (goodput 24.2/s, offered 24.2/s)" in verdict.verdict


def test_full_generator_is_always_the_limit():
    assert _judge(_result(0.95, dropped=1)).limited_by == "generator_cpu"


@pytest.mark.parametrize(
    ("cores", "limit"),
    [
        ({"lab": 0.08, "others": 1.9}, "others"),
        ({"lab": 0.9, "others": 0.2}, "generator_cpu"),
        # A target without CPUs of its own fills the generator's.
        ({"lab": 0.3, "sharing": 1.6}, "target"),
    ],
)
def test_full_cpus_are_limit_of_whoever_used_most_of_them(cores, limit):
    uses = [CpuUse(float(second), 0.99, 0.99, **cores) for second in range(61)]
    assert _judge(_result(0.99, cpu=uses)).limited_by == limit


@pytest.mark.parametrize(("waited", "limited_by"), [(0.6, "others"), (0.03, "target")])
def test_others_are_the_limit_if_the_server_waits_for_a_cpu(waited, limited_by):
    uses = [CpuUse(float(second), 0.99, 0.3, {"backend": 0.1}, taken=0.9) for second in range(61)]
    signals = [Signals(float(second), 10, waited=waited) for second in range(61)]
    assert _judge(_result(0.3, cpu=uses, signals=signals)).limited_by == limited_by


def test_others_on_the_targets_cpus_are_the_limit():
    uses = [CpuUse(float(second), 0.99, 0.3, {"backend": 0.1}, taken=0.9) for second in range(61)]
    assert _judge(_result(0.3, cpu=uses)).limited_by == "others"


@pytest.mark.parametrize("taken", [0.0, 0.1, 0.3, 0.45, 0.6, 0.9])
@pytest.mark.parametrize("waited", [None, 0.05, 0.6])
@pytest.mark.parametrize("dropped", [0, 5])
@pytest.mark.parametrize("load_cpu", [0.3, 0.8, 0.99])
def test_verdict_and_bottleneck_agree_on_other_programs(taken, waited, dropped, load_cpu):
    cores = {"lab": 0.3, "others": taken + 0.1, "taken": taken}
    uses = [CpuUse(float(s), 0.99, load_cpu, {"target": 0.3}, **cores) for s in range(61)]
    seen = {"in_flight": 9.0, "threads": {"cpu": 1.0}, "cpu": 0.6}
    signals = [Signals(float(s), 10, waited=waited, **seen) for s in range(61) if waited]
    metrics = _result(load_cpu, cpu=uses, signals=signals, dropped=dropped)
    result = metrics.model_copy(update=vars(_judge(metrics)))
    result = with_bottleneck(result, facts_of(result, load_settings(), Bounds(), {}))
    by_others = result.bottleneck is not None and result.bottleneck.cause == causes.OTHERS.name
    assert (result.limited_by == "others") == by_others
    assert ("limited by other programs, so this is no" in result.verdict) == by_others
    assert not by_others or "limited by the target" not in result.verdict


def test_programs_that_take_a_third_of_the_cpus_that_requests_wait_for_are_the_limit():
    uses = [CpuUse(float(s), 0.99, 0.3, {"target": 0.6}, others=0.4, taken=0.3) for s in range(61)]
    signals = [Signals(float(s), 10, in_flight=9.0, waited=0.6, cpu=0.6) for s in range(61)]
    metrics = _result(0.3, cpu=uses, signals=signals)
    result = metrics.model_copy(update=vars(_judge(metrics)))
    assert "limited by the target" in result.verdict
    result = with_bottleneck(result, facts_of(result, load_settings(), Bounds(), {}))
    assert result.verdict.endswith("limited by other programs, so this is no limit of the target")
    assert result.lower_bound == "others"


def test_generator_that_a_quota_stops_is_the_limit():
    uses = [CpuUse(float(second), 0.99, 0.3, throttled=0.2) for second in range(61)]
    assert _judge(_result(0.3, cpu=uses)).limited_by == "generator_cpu"


def test_target_that_can_not_be_seen_is_never_the_limit():
    unseen = TargetName(name="shop", url="http://shop", observed=False)
    verdict = _judge(_result(0.5, target=unseen))
    assert verdict.limited_by == "unseen"
    assert "not visible from here" in verdict.verdict


@pytest.mark.parametrize(("target", "limit"), [(0.5, "generator_cpu"), (0.97, "target")])
def test_nearly_full_generator_is_limit_unless_target_was_busier(target, limit):
    assert _judge(_result(0.83, target)).limited_by == limit


def test_dropped_iterations_with_idle_generator_mean_too_few_users():
    assert _judge(_result(0.5, dropped=1)).limited_by == "vu_cap"


def test_ramp_that_held_has_no_limit_and_names_top_rate():
    verdict = _judge(_result(0.5, slow_from=99))
    assert (verdict.outcome, verdict.limited_by) == ("held", "none")
    assert "60.0 requests/s" in verdict.verdict
    assert verdict.verdict.endswith("achieved 95%)")


def test_late_limit_violation_is_reported():
    """The ramp held only because the load ended before a third violation."""
    verdict = _judge(_result(0.5, slow_from=59))
    assert verdict.outcome == "held"
    assert "no limit was exceeded (" in verdict.verdict
    text = "in 3 windows in a row; 2 of 56 windows exceeded one, the last at 60 s of 60 s: p95 4000"
    assert text in verdict.verdict


@pytest.mark.parametrize("profile", ["smoke", "closed"])
def test_closed_load_without_one_of_its_generators_is_not_judged(profile):
    fault = GeneratorFault("3", "ended", 5.0, 15.0)
    recorded = Completeness(100, 100, 20, 0, generators=4, faults=(fault,))
    result = Result(profile=profile, requests=100, recorded=recorded)
    verdict = verdict_of(result, None, Bounds())
    assert verdict.outcome == "unrecorded"
    assert "generator 3 ended after 5 s" in verdict.verdict


@pytest.mark.parametrize(
    ("cpu", "limited"), [(0.95, "generator_cpu"), (0.5, "target"), (None, "unseen")]
)
def test_break_is_the_targets_only_if_the_pods_had_cpu_left(cpu, limited):
    pods = [GeneratorResult(name="1", requests=1, cpu=cpu, cpu_limit=1.0)]
    assert _judge(_result(0.1, generators=pods)).limited_by == limited


@pytest.mark.parametrize(("failed", "outcome"), [(False, "passed"), (True, "failed")])
def test_smoke_test_passes_or_fails_by_its_thresholds(failed, outcome):
    smoke = Result(profile="smoke", requests=7)
    verdict = verdict_of(smoke, None, Bounds(), thresholds_failed=failed)
    assert verdict.outcome == outcome
    assert "7 requests" in verdict.verdict


@pytest.mark.parametrize(("busy", "limit"), [(0.95, "generator_cpu"), (0.5, "none")])
def test_closed_load_is_lower_bound_when_generator_was_full(busy, limit):
    verdict = verdict_of(_result(busy, 0.8, profile="closed", requests=900), None, Bounds())
    assert (verdict.outcome, verdict.limited_by) == ("measured", limit)
    assert ("limited by the load generator" in verdict.verdict) == (busy > 0.9)


@pytest.mark.parametrize(
    ("completeness", "text"),
    [
        (Completeness(70, None, 60, 60), "Prometheus does not answer; k6 counted 70 requests"),
        (
            Completeness(70, 70, 60, 8, missing_from=5),
            "has 70 of 70 requests, setup's included, and lacks 8 of 60 s, from 5 s on",
        ),
    ],
)
def test_incomplete_prometheus_data_is_not_judged(completeness, text):
    verdict = _judge(_result(0.5, recorded=completeness, windows=[]))
    assert (verdict.outcome, verdict.break_point) == ("unrecorded", None)
    assert text in verdict.verdict
    assert "No break point can be found" in verdict.verdict


@pytest.mark.parametrize(("busy", "limit"), [(0.95, "generator_cpu"), (0.5, "none")])
def test_generator_too_busy_to_push_is_the_limit(busy, limit):
    completeness = Completeness(70, 70, 60, 8)
    verdict = _judge(_result(busy, recorded=completeness, windows=[]))
    assert (verdict.outcome, verdict.limited_by) == ("unrecorded", limit)
    assert ("limited by the load generator" in verdict.verdict) == (limit == "generator_cpu")


def test_break_before_what_prometheus_lacks_is_a_break():
    result = _result(0.5, recorded=Completeness(70, 70, 60, 8, missing_from=40))
    verdict = _judge(result)
    assert result.model_copy(update=vars(verdict)).lower_bound is Limit.UNRECORDED
    assert (verdict.outcome, verdict.limited_by) == ("broke", "target")
    assert "; afterwards: Prometheus has 70 of 70 requests" in verdict.verdict
    assert verdict.verdict.endswith("and lacks 8 of 60 s, from 40 s on")


def test_different_request_count_alone_does_not_void_verdict():
    completeness = Completeness(70, 69, 60, 0)
    assert _judge(_result(0.5, recorded=completeness)).outcome == "broke"
    assert not completeness.complete


@pytest.mark.parametrize(
    ("counts", "outcome"),
    [
        ({"expected": 50, "lost": 0}, "held"),
        ({"expected": 50, "lost": 1}, "failed"),
        ({"expected": 50, "lost": 0, "doubled": 1}, "failed"),
        ({"expected": 50, "lost": 0, "closed": 1}, "failed"),
        # No message was expected, so nothing was verified.
        ({"expected": 0, "lost": 0}, "failed"),
    ],
)
def test_ramp_fails_unless_every_message_arrives_exactly_once(counts, outcome):
    verdict = _judge(_result(0.5, slow_from=99, websockets=WebSockets(**counts)))
    assert verdict.outcome == outcome
    assert f"{counts['lost']} lost" in verdict.verdict
