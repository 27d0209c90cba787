"""Ratios, intervals and verdicts of a comparison, on simulated sessions."""

import math
import random

import pytest

from load_lab.compare.ratios import is_clear, is_look, is_more, judge
from load_lab.results.ratio import Pair, ratio_of_pairs

SESSIONS = 200
# Of the log ratio of a block: more than the 0.3 to 0.5 % that were measured on 2 shared CPUs.
NOISE = 0.02
THRESHOLD = 0.05


def _block(rng, number, ratio, noise, stack=0.01, speed=1.0):
    """Return a block of a duet. The CPU's speed and the stack's bias act on both variants."""
    swapped = number % 2 == 0
    bias = stack if swapped else -stack
    cost = 20 / speed * math.exp(rng.gauss(0, 0.1))
    return Pair(cost, cost * ratio * math.exp(rng.gauss(0, noise) + bias), swapped)


def _session(seed, ratio, noise=NOISE, blocks=12, speed=lambda _number: 1.0):
    """Return the verdict of a session that stops as `lab compare` does."""
    rng, pairs = random.Random(seed), []
    for number in range(1, blocks + 1):
        pairs.append(_block(rng, number, ratio, noise, speed=speed(number)))
        if is_clear(pairs, THRESHOLD):
            break
    return judge(ratio_of_pairs(pairs), THRESHOLD), ratio_of_pairs(pairs)


def _verdicts(ratio, **options):
    return [_session(seed, ratio, **options)[0] for seed in range(SESSIONS)]


def test_equal_variants_are_not_told_apart():
    verdicts = _verdicts(1.0)
    assert sum(verdict in ("slower", "faster") for verdict in verdicts) <= 0.02 * SESSIONS
    assert verdicts.count("not slower") >= 0.9 * SESSIONS


@pytest.mark.parametrize(("ratio", "verdict"), [(1.05, "slower"), (1 / 1.05, "faster")])
def test_five_percent_is_found(ratio, verdict):
    assert _verdicts(ratio).count(verdict) >= 0.9 * SESSIONS


def test_interval_covers_the_ratio():
    estimates = [_session(seed, 1.05)[1] for seed in range(SESSIONS)]
    covers = sum(found.low <= 1.05 <= found.high for found in estimates)
    assert covers >= 0.95 * SESSIONS


def test_change_of_the_speed_in_the_middle_is_no_difference():
    verdicts = _verdicts(1.0, speed=lambda number: 1.0 if number <= 4 else 1 / 1.3)
    assert sum(verdict in ("slower", "faster") for verdict in verdicts) <= 0.02 * SESSIONS


def test_noisy_machine_can_not_tell_and_says_what_it_could():
    verdict, found = _session(1, 1.0, noise=0.2)
    assert verdict == "can't tell"
    assert found.resolution > 0.1


def test_difference_of_the_stacks_is_not_one_of_the_variants():
    rng = random.Random(1)
    pairs = [_block(rng, number, 1.0, 0.002, stack=0.05) for number in range(1, 7)]
    found = ratio_of_pairs(pairs)
    assert found.ratio == pytest.approx(1.0, abs=0.005)
    assert found.resolution < 0.01


def test_ratio_is_that_of_the_blocks():
    pairs = [Pair(10, 11), Pair(20, 22), Pair(5, 5.5)]
    found = ratio_of_pairs(pairs)
    assert (found.ratio, found.low, found.high) == pytest.approx((1.1, 1.1, 1.1))
    assert judge(found, THRESHOLD) == "slower"


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [Pair(1, 1), Pair(1, 1)],
        [Pair(1, 0), Pair(1, 1), Pair(1, 1)],
    ],
)
def test_too_few_blocks_have_no_ratio(pairs):
    assert ratio_of_pairs(pairs) is None
    assert judge(ratio_of_pairs(pairs), THRESHOLD) == "can't tell"


def test_small_certain_difference_is_not_slower():
    pairs = [Pair(100, 101 + number % 2 * 0.1) for number in range(6)]
    assert judge(ratio_of_pairs(pairs), THRESHOLD) == "not slower"
    assert judge(ratio_of_pairs(pairs), 0.01) == "slower"


def test_evidence_is_looked_at_now_and_then():
    assert [number for number in range(1, 17) if is_look(number)] == [4, 6, 9, 12, 14, 16]


@pytest.mark.parametrize(
    ("shares", "more"),
    [
        ([(0.0, 0.2)] * 4, True),
        ([(0.01, 0.03), (0.0, 0.02), (0.02, 0.03), (0.01, 0.02)], True),
        # All in one block, fewer than what counts, too few blocks, and more in A.
        ([(0.0, 0.1), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)], False),
        ([(0.0, 0.001)] * 4, False),
        ([(0.0, 0.2)] * 3, False),
        ([(0.2, 0.0)] * 4, False),
    ],
)
def test_more_failures_in_most_blocks_count(shares, more):
    assert is_more(shares, 0.005) is more
