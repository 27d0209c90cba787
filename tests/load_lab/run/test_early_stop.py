"""When a ramp may stop because its load generator is the limit."""

from dataclasses import replace

import pytest

from load_lab.machine.cpu_use import CpuUse
from load_lab.run.early_stop import generator_is_full

STARTED = 1000.0


def _uses(*load):
    return [CpuUse(STARTED + 2 + second, target=0.4, load=use) for second, use in enumerate(load)]


@pytest.mark.parametrize(
    ("load", "full"),
    [
        ([1.0] * 7, False),
        ([1.0] * 8, True),
        ([0.2] * 20 + [0.9] * 8, True),
        ([1.0] * 7 + [0.89], False),
        ([1.0] * 20 + [0.5], False),
    ],
)
def test_generator_is_full_after_eight_seconds_without_a_pause(load, full):
    assert generator_is_full(_uses(*load), STARTED) is full


def test_generator_is_full_if_a_quota_stops_it():
    uses = [replace(use, throttled=0.5) for use in _uses(*[0.3] * 8)]
    assert generator_is_full(uses, STARTED)
    assert not generator_is_full([*uses, *_uses(*[0.3] * 8)], STARTED)


def test_seconds_before_the_load_do_not_count():
    assert not generator_is_full(_uses(*[1.0] * 8), STARTED + 5)
