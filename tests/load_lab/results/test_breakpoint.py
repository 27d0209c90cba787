"""Break point detection on synthetic counters."""

import pytest

from load_lab.metrics.plan import Plan, Stage
from load_lab.metrics.windows import WINDOW_SECONDS, Bounds, Counters, highest_rate, windows
from load_lab.results.breakpoint import find_break, is_past_break

RAMP = Plan((Stage(100, 0, 100),), "requests")


def _counters(*, breaks_at=None, p95=lambda _: 50.0, errors=lambda _: 0.0, dropped=lambda _: 0.0):
    """Return counters of a target that keeps up until `breaks_at`, then answers at that rate."""

    def at(moment):
        if breaks_at is None or moment <= breaks_at:
            answers = RAMP.arrivals(moment)
        else:
            answers = RAMP.arrivals(breaks_at) + (moment - breaks_at) * breaks_at
        bad = errors(moment)
        return Counters(answers, bad, answers - bad, dropped(moment), p95(moment))

    return at


def test_plan_offers_area_under_its_stages():
    plan = Plan((Stage(10, 0, 10), Stage(10, 10, 10)), "requests")
    assert plan.arrivals(10) == 50
    assert plan.arrivals(20) == 150
    assert plan.offered(5, 10) == pytest.approx(7.5)
    assert plan.seconds == 20
    assert plan.top_rate == 10


def test_target_that_keeps_up_does_not_break():
    run_windows = windows(RAMP, _counters(), Bounds())
    assert len(run_windows) == 100 - WINDOW_SECONDS + 1
    assert find_break(run_windows) is None


def test_target_breaks_where_it_stops_keeping_up():
    point = find_break(windows(RAMP, _counters(breaks_at=60), Bounds()))
    assert point is not None
    # The requests due lag 2 s behind the offered rate; 5 % of them are missing some seconds later.
    assert 60 <= point.seconds_into_test <= 70
    assert "achieved" in point.reasons[0]
    assert point.goodput == pytest.approx(60, rel=0.05)


@pytest.mark.parametrize("seconds", [20, 30, 60, 300])
def test_break_point_is_sustained_rate_for_any_ramp_slope(seconds):
    """On a steep ramp, the offered rate is a fifth higher when the lag is detected."""
    plan = Plan((Stage(seconds, 0, 400),), "requests")
    saturated_at = seconds / 2

    def counters(moment):
        answers = plan.arrivals(min(moment, saturated_at)) + max(moment - saturated_at, 0) * 200
        return Counters(answers, 0, answers, 0, 50)

    point = find_break(windows(plan, counters, Bounds()))
    assert point is not None
    assert point.rate == pytest.approx(200, rel=0.01)
    assert point.offered > 200 * 1.05


def test_failed_answers_do_not_count_as_sustained():
    """From 10 s on, every answer is an error."""
    plan = Plan((Stage(20, 0, 400),), "requests")

    def counters(moment):
        bad = plan.arrivals(moment) - plan.arrivals(min(moment, 10))
        return Counters(plan.arrivals(moment), bad, plan.arrivals(moment) - bad, 0, 50)

    point = find_break(windows(plan, counters, Bounds()))
    assert point is not None
    assert (point.seconds_into_test, point.offered) == (11, 170)
    # The rate of the window before the break.
    assert point.rate == pytest.approx(150)


def test_backlog_answered_late_does_not_count_as_sustained():
    """After a stall of 2.5 s, windows that begin in the stall achieve more than was offered."""

    def counters(moment):
        answers = RAMP.arrivals(20 if 20 < moment < 22.5 else moment)
        return Counters(answers, 0, answers, 0, 2000 if moment >= 27 else 50)

    run_windows = windows(RAMP, counters, Bounds())
    point = find_break(run_windows)
    assert point is not None
    assert point.seconds_into_test == 27
    (window,) = (window for window in run_windows if window.end == 27)
    assert point.rate == point.offered < window.achieved


def test_slow_answers_break_target_even_when_all_arrive():
    counters = _counters(p95=lambda moment: 1001 if moment >= 40 else 999)
    point = find_break(windows(RAMP, counters, Bounds()))
    assert point is not None
    assert point.seconds_into_test == 40
    assert point.reasons == ("p95 1001 ms > 1000 ms",)


def test_errors_break_target():
    counters = _counters(errors=lambda moment: max(0.0, moment - 50) * 10)
    point = find_break(windows(RAMP, counters, Bounds()))
    assert point is not None
    assert point.seconds_into_test == 51
    assert "errors" in point.reasons[0]


@pytest.mark.parametrize("lag", [0.3, 0.7, 0.95])
@pytest.mark.parametrize(("top", "seconds"), [(500, 300), (60, 60), (100, 120), (400, 12)])
def test_counters_lagging_by_one_push_are_not_a_break(top, seconds, lag):
    plan = Plan((Stage(seconds, 0, top),), "requests")

    def counters(moment):
        answers = int(plan.arrivals(moment - lag))
        return Counters(answers, 0, answers, 0, 50)

    assert find_break(windows(plan, counters, Bounds())) is None


def test_two_bad_windows_are_not_a_break():
    counters = _counters(p95=lambda moment: 5000 if moment in (40, 41) else 50)
    assert find_break(windows(RAMP, counters, Bounds())) is None


def test_limits_are_configurable():
    counters = _counters(p95=lambda _: 300)
    assert find_break(windows(RAMP, counters, Bounds(p95_ms=299))) is not None
    assert find_break(windows(RAMP, counters, Bounds(p95_ms=301))) is None


def test_one_request_in_flight_at_low_rate_is_not_a_break():
    plan = Plan((Stage(60, 0, 3),), "requests")

    def counters(moment):
        answers = max(plan.arrivals(moment) - 1, 0)
        return Counters(answers, 0, answers, 0, 50)

    assert find_break(windows(plan, counters, Bounds())) is None


def test_journeys_are_judged_by_started_iterations():
    plan = Plan(RAMP.stages, "iterations")
    unfinished = _counters(breaks_at=0)
    assert find_break(windows(plan, unfinished, Bounds())) is None
    dropped = _counters(breaks_at=0, dropped=lambda moment: max(0.0, moment - 30) * 20)
    point = find_break(windows(plan, dropped, Bounds()))
    assert point is not None
    assert 31 <= point.seconds_into_test <= 34


def test_highest_rate_is_that_of_best_five_seconds():
    assert highest_rate([0, 1, 2, 3, 4, 5, 16, 17, 17, 17, 17, 17]) == pytest.approx(15 / 5)
    assert highest_rate([0, 100, 200, 300, 400]) is None


@pytest.mark.parametrize("capacity", [7, 20, 33, 60, 85])
def test_ramp_stopped_early_has_break_point_of_whole_ramp(capacity):
    run_windows = windows(RAMP, _counters(breaks_at=capacity), Bounds())
    stops = [end for end in range(len(run_windows)) if is_past_break(run_windows[:end])]
    assert find_break(run_windows[: stops[0]]) == find_break(run_windows)
    # Three windows violate a limit; the ramp then waits for three more.
    assert run_windows[stops[0] - 1].end == find_break(run_windows).seconds_into_test + 5


def test_ramp_that_does_not_break_does_not_stop_early():
    run_windows = windows(RAMP, _counters(), Bounds())
    assert not any(is_past_break(run_windows[:end]) for end in range(len(run_windows) + 1))


def test_shortened_plan_offers_same_rate_until_its_end():
    plan = Plan((Stage(10, 0, 10), Stage(20, 10, 50)), "requests")
    short_plan = plan.until(15)
    assert (short_plan.seconds, short_plan.top_rate) == (15, 20)
    assert short_plan.arrivals(15) == plan.arrivals(15)
    assert plan.until(99) == plan
