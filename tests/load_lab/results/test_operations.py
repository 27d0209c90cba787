"""Which operation of a load exceeded a limit, and when."""

import pytest

from load_lab.metrics.windows import Bounds
from load_lab.results.operations import exceeded_after, exceeded_for_good_after

STARTED = 1_000.0


def _series(values):
    """Return the values of windows that end 5, 6, 7, … s into the load."""
    return {STARTED + 5 + n: value for n, value in enumerate(values) if value is not None}


@pytest.mark.parametrize(
    ("p95_seconds", "errors", "seconds"),
    [
        ([0.2, 1.1, 1.2, 1.3, 1.4], [], 6),
        ([0.2, 1.1, 1.2, 0.9, 1.4], [], None),
        ([0.2] * 5, [0, 0, 0.02, 0.02, 0.02], 7),
        # A request that got no answer has no response time.
        ([None] * 5, [None, 0.02, 0.5, 1], 6),
        # One limit after the other.
        ([1.1, 0.2, 0.2, 0.2], [0, 0.5, 0.5, 0], 5),
        ([1.1, 1.1], [], None),
        ([], [], None),
    ],
)
def test_limit_is_exceeded_by_three_windows_in_a_row(p95_seconds, errors, seconds):
    found = exceeded_after(_series(p95_seconds), _series(errors), Bounds(), STARTED)
    assert found == seconds


@pytest.mark.parametrize(
    ("p95_seconds", "errors", "seconds"),
    [
        ([0.2, 1.1, 1.1], [], 6),
        ([1.1, 0.2, 0.2], [], None),
        ([1.1, 0.2, 1.2], [], 7),
        # Its one request failed, in the last second.
        ([None] * 5, [None, None, None, None, 1], 9),
        ([], [], None),
    ],
)
def test_few_requests_exceed_a_limit_if_they_do_at_the_end(p95_seconds, errors, seconds):
    found = exceeded_for_good_after(_series(p95_seconds), _series(errors), Bounds(), STARTED)
    assert found == seconds
