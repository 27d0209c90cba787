"""Generators that did not send their share."""

import pytest

from load_lab.load.summary import GeneratorPart
from load_lab.results.completeness import Completeness, LoadSpan, _faults, gaps

START = 1000.0
PUSHES = [START + second for second in range(21)]


def _load(lost=()):
    return LoadSpan("t", START, 20, 100, lost=lost)


@pytest.mark.parametrize(
    ("part", "pushes", "lost", "text"),
    [
        (GeneratorPart("3", 10, START, START + 20), PUSHES, (), []),
        # The others ended as planned, while a late one still sent.
        (GeneratorPart("3", 10, START, START + 14), PUSHES[:15], (), []),
        (GeneratorPart("3", 10, START + 0.4, START + 20), PUSHES, (), []),
        (
            GeneratorPart("3", 10, START + 5, START + 20),
            PUSHES[6:],
            (),
            ["began 5.0 s after the others"],
        ),
        (GeneratorPart("3", None, None, None), PUSHES[:13], ("3",), ["ended after 12 s"]),
        (
            GeneratorPart("3", 10, START, START + 20),
            PUSHES[:11] + PUSHES[15:],
            (),
            ["sent nothing for 4 s, from 10 s on"],
        ),
    ],
)
def test_fault_names_the_generator(part, pushes, lost, text):
    faults = _faults(part, _load(lost), pushes)
    assert len(faults) == len(text)
    for fault, expected in zip(faults, text, strict=True):
        assert fault.text.startswith("generator 3 ")
        assert expected in fault.text


def test_run_with_a_fault_is_not_readable_and_says_what_share_was_missing():
    faults = tuple(_faults(GeneratorPart("3", None, None, None), _load(("3",)), PUSHES[:13]))
    completeness = Completeness(100, 100, 20, 0, generators=4, faults=faults)
    assert not completeness.readable
    assert completeness.text.endswith("so up to 25% of the load was missing")


def test_gap_of_a_push_that_came_late_does_not_count():
    assert gaps([START + 1, START + 4, START + 5], START, START + 6) == []
    assert gaps([START + 1, START + 6], START, START + 6) == [(START + 1, 4)]
