"""200 clients compete for the same 10 slots through the whole stack; each slot is booked once."""

import os
import re

import pytest

from tests.support.contention import race, race_settings

pytestmark = pytest.mark.full

# 5 rounds take about ten seconds per booking variant; `make test-input` runs 1,000 rounds.
ROUNDS = int(os.environ.get("CONTENTION_ROUNDS", "5"))


def _deadlocks_logged(stack):
    log = (stack._state.logs / "postgres.log").read_text(errors="replace")
    return len(re.findall("deadlock detected", log))


@pytest.mark.parametrize("booking", ["naive", "fast"])
def test_each_slot_is_booked_once(stack, capsys, booking):
    before = _deadlocks_logged(stack)
    with race_settings(stack, booking), capsys.disabled():
        print(f"\n{booking}: {race(stack, ROUNDS, _report_progress)}")
    assert _deadlocks_logged(stack) == before


def _report_progress(rounds):
    if rounds and rounds % 100 == 0:
        print(f"  {rounds} of {ROUNDS} rounds …", flush=True)
