"""The cause of each recorded run: what was seen under an injected one, without a stack.

`RECORD_CAUSES=FOLDER python -m tests.machine causes` records them.
"""

from pathlib import Path
from typing import get_args

import pytest

from load_lab.diagnosis import rules
from load_lab.diagnosis.diagnosis import diagnose
from load_lab.diagnosis.split import Place
from tests.stack.bottleneck.recording import read_recorded

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_cause_is_named(path, monkeypatch):
    run = read_recorded(path)
    found = diagnose(run.facts)
    if found.certainty == "likely":
        assert found.cause in run.right, found
    assert not [name for name in run.never if found.cause and name in found.headline], found
    monkeypatch.setattr(rules, "RULES", rules.RULES[::-1])
    assert diagnose(run.facts) == found, "the order of the rules decides, not their priorities"


@pytest.mark.parametrize("place", get_args(Place))
def test_each_place_has_a_cause_if_no_condition_holds(place):
    lowest = min((r for r in rules.RULES if place in r.places), key=lambda rule: rule.priority)
    assert lowest.when is rules.always
