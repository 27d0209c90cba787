"""When a hold passes, fails, or goes on."""

import pytest

from load_lab.capacity.judgement import HoldPlan, judge
from load_lab.capacity.timeline import Second, Slo, growth, timeline_of
from load_lab.metrics.counters import Counter, HistogramCounter
from load_lab.metrics.plan import Plan, Stage
from load_lab.metrics.windows import Totals

RATE = 100.0
SLO = Slo(0.3, max_errors=0.01)
PLAN = HoldPlan(shortest=6, usual=15, longest=30)


def _second(mean=0.02, late=0.0, failed=0.0, in_flight=2.0, overdue=0.0):
    return Second(RATE, RATE, late, failed, mean * RATE, in_flight, overdue)


def _judge(*seconds):
    return judge(RATE, seconds, SLO, PLAN)


def test_quick_responses_pass_as_early_as_allowed():
    assert _judge(*[_second()] * 5) is None
    assert _judge(*[_second()] * 6).passed


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [
        ([_second(late=60)] * 4, "took longer than 300 ms"),
        ([_second(failed=5)] * 4, "5.0% of the requests failed; allowed: 1.0%"),
        ([_second()] * 2 + [_second(in_flight=90)], "90 requests were waiting"),
        ([_second(mean=0.04 * at) for at in range(9)], "response times grew by 40 ms a second"),
    ],
)
def test_overload_fails_early_with_its_reason(seconds, reason):
    judgement = _judge(*seconds)
    assert not judgement.passed
    assert reason in judgement.reason


def test_stall_at_the_beginning_does_not_fail_a_hold():
    stall = [_second(late=70), _second(), _second(), _second(), _second(), _second()]
    assert _judge(*stall[:3]) is None
    assert _judge(*stall, *[_second()] * 24).passed


def test_growth_that_is_not_late_yet_fails_at_the_end():
    # An overload by 2 %: after 15 s, responses take 300 ms at most.
    seconds = [_second(mean=0.01 + 0.0125 * at + 0.001 * (at % 3)) for at in range(15)]
    judgement = _judge(*seconds)
    assert not judgement.passed
    assert "grew" in judgement.reason


def test_hold_near_the_limit_goes_on_to_its_longest():
    seconds = [_second(late=5 if at % 2 else 6) for at in range(30)]
    assert _judge(*seconds[:15]) is None
    assert not _judge(*seconds).passed


def test_growth_of_few_points_is_not_known():
    assert growth([_second()] * 3).error == float("inf")
    assert growth([_second(mean=0.1 * at) for at in range(5)]).slope == pytest.approx(0.1)


def test_course_counts_what_k6_pushed():
    times = range(1000, 1005)
    pushes = {float(at): 10.0 * (at - 1000) for at in times}
    half = {at: value / 2 for at, value in pushes.items()}
    histograms = {at: {(0.1, 0.3): value} for at, value in pushes.items()}
    totals = Totals(
        1000.0,
        good=Counter([pushes], 1000.0),
        bad=Counter([], 1000.0),
        in_time=Counter([half], 1000.0),
        dropped=Counter([], 1000.0),
        durations=HistogramCounter([histograms], 1000.0),
    )
    plan = Plan((Stage(10, 20, 20),), "requests")
    timeline = timeline_of(totals, plan, 4, SLO)
    assert len(timeline) == 4
    third = timeline[2]
    assert (third.arrived, third.answered, third.late, third.failed) == (20, 10, 5, 0)
    assert third.response_seconds == pytest.approx(2.0)
    assert third.in_flight == 30
    # Of the 60 that arrived until second 3, 34 did until 1.3 s earlier, and 30 were answered.
    assert third.overdue == pytest.approx(4)


def test_late_responses_are_limited_whatever_the_allowed_errors():
    slo = Slo(0.3, max_errors=0.2)
    late = judge(RATE, [_second(late=15)] * 30, slo, PLAN)
    assert not late.passed
    assert late.reason == "15% of the responses took longer than 300 ms"
    assert judge(RATE, [_second(failed=15)] * 30, slo, PLAN).passed
