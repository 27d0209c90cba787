"""Counter values between two pushes."""

import pytest

from load_lab.metrics.counters import Counter
from load_lab.metrics.plan import Plan, Stage
from load_lab.metrics.windows import WINDOW_SECONDS, Bounds, Counters, highest_rate, windows
from load_lab.results.breakpoint import find_break

# Pushes alternate between 0.01 s before and 0.01 s after a whole second.
JITTER = [second + (0.01 if second % 2 else -0.01) for second in range(1, 31)]


def test_steady_rate_is_exact_despite_push_jitter():
    counter = Counter([{at: 200 * at for at in JITTER}])
    assert highest_rate([counter.at(second) for second in range(30)]) == pytest.approx(
        200, rel=1e-3
    )


def test_windows_of_steady_load_have_its_rate():
    plan = Plan((Stage(29, 200, 200),), "requests")
    counter = Counter(
        [{at: 120 * at for at in JITTER}, {at + 0.3: 80 * (at + 0.3) for at in JITTER}]
    )

    def at(moment):
        return Counters(counter.at(moment), 0, counter.at(moment), 0, 20)

    run_windows = windows(plan, at, Bounds())
    assert [window.achieved for window in run_windows] == pytest.approx(
        [200] * len(run_windows), rel=0.01
    )
    assert find_break(run_windows) is None
    assert len(run_windows) == 29 - WINDOW_SECONDS + 1


def test_increase_after_gap_falls_in_second_before_push():
    counter = Counter([{10.0: 100.0, 15.0: 300.0}])
    assert [counter.at(when) for when in (10, 12, 14, 14.5, 15, 99)] == [
        100,
        100,
        100,
        200,
        300,
        300,
    ]


def test_series_begins_at_zero():
    counter = Counter([{10.0: 100.0}, {}])
    assert [counter.at(when) for when in (8, 9, 9.5, 10)] == [0, 0, 50, 100]
    counter = Counter([{10.0: 100.0}], start=9.75)
    assert [counter.at(when) for when in (9.5, 9.75, 9.875, 10)] == [0, 0, 50, 100]
    assert Counter([]).at(7) == 0
