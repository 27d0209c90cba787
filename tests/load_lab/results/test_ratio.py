"""Ratios of repeats, with their intervals."""

import math
import random

import pytest

from load_lab.results.ratio import ratio_of_repeats


def test_interval_covers_the_true_ratio_in_nine_of_ten():
    """Three repeats of each cell, which differ by 5 %; the true ratio is 2."""
    rng, covered, runs = random.Random(1), 0, 400
    for _ in range(runs):
        base, values = (
            [rate * math.exp(rng.gauss(0, 0.05)) for _ in range(3)] for rate in (100, 200)
        )
        ratio = ratio_of_repeats(base, values)
        # The interval is around the mean of the logarithms, and the factor is one of medians.
        centre = math.exp(
            sum(map(math.log, values)) / len(values) - sum(map(math.log, base)) / len(base)
        )
        covered += abs(math.log(2 / centre)) <= math.log(1 + ratio.resolution)
    assert 0.87 * runs <= covered <= 0.97 * runs


def test_error_is_half_of_welchs_interval():
    """By hand: logarithms ±0.01 around 0 and around ln 2; t of 2 degrees for 90 % is 2.92."""
    pair = [math.exp(-0.01), math.exp(0.01)]
    ratio = ratio_of_repeats(pair, [2 * value for value in pair])
    assert ratio.ratio == pytest.approx(2)
    assert ratio.resolution == pytest.approx(
        math.exp(2.92 * math.sqrt(2 * 0.0002 / 2)) - 1, rel=1e-3
    )
    assert ratio.text == "2.0 × ± 4.2 %"


@pytest.mark.parametrize(
    ("base", "values", "text"),
    [([10.0], [34.0, 34.0], "3.4 ×"), ([10.0, 10.0], [34.0, 0.0], "1.7 ×")],
    ids=["one repeat", "no logarithm"],
)
def test_ratio_without_error(base, values, text):
    assert ratio_of_repeats(base, values).text == text


@pytest.mark.parametrize(("base", "values"), [([], [1.0]), ([1.0], []), ([0.0], [1.0])])
def test_no_ratio(base, values):
    assert ratio_of_repeats(base, values) is None
