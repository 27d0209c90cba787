"""Counters and histograms over several series."""

import pytest

from load_lab.metrics.counters import HistogramCounter, quantile

LOW, HIGH = (0.1, 0.2), (0.2, 0.4)


def test_quantile_is_interpolated_within_its_bucket():
    assert quantile({LOW: 10, HIGH: 10}, 0.5) == 0.2
    assert quantile({LOW: 10, HIGH: 10}, 0.75) == pytest.approx(0.3)
    assert quantile({}, 0.5) is None


def test_quantile_of_requests_without_a_duration_is_zero():
    """Prometheus's bucket around 0 is 6e-39 s wide: on a log axis its middle hides all else."""
    zero = (-(2.0**-128), 2.0**-128)
    assert quantile({zero: 96, HIGH: 4}, 0.95) == 0
    assert quantile({zero: 94, HIGH: 6}, 0.95) > 0.2


def test_total_has_the_last_push_of_each_series():
    first = {100.0: {LOW: 1}, 101.0: {LOW: 2, HIGH: 1}}
    second = {100.4: {LOW: 3}}
    assert HistogramCounter([first, second], 99).total() == {LOW: 5, HIGH: 1}


def test_window_has_the_difference_of_each_series():
    # The second generator pushes at other moments, and its last pushes are missing.
    first = {100.0 + n: {LOW: 10 * n, HIGH: 0} for n in range(11)}
    second = {100.5 + n: {LOW: 0, HIGH: 10 * n} for n in range(6)}
    durations = HistogramCounter([first, second], 99)
    assert quantile(durations.between(101, 105), 0.25) < 0.2
    assert quantile(durations.between(101, 105), 0.75) > 0.2
    assert quantile(durations.between(106, 110), 0.99) < 0.2
