"""What `lab bench` loads with: nights that are free, and a target that is held back."""

from types import SimpleNamespace

import psutil
import pytest

from lab.errors import LabError
from lab.host.cpus import usable_cpus
from lab.stack.database import DATABASE
from lab.stack.native.supervision import wait_for
from lab.suites.bench import busy, dataset


@pytest.mark.parametrize("booked", ["9500-01-01", "9999-12-31", "10421-01-01"])
def test_a_calendar_that_is_booked_up_is_one_message(booked):
    engine = SimpleNamespace(sql=lambda *_: [booked])
    with pytest.raises(LabError, match=f"reach up to {booked}: no nights are left"):
        dataset.free_slots(engine)


def test_no_load_books_in_a_hotel_that_is_spared(stack):
    """Its page is read: it has to stay as large as it is."""
    first, second, *_ = stack.sql(DATABASE, "SELECT id FROM hotels_hotel ORDER BY id")
    mine = set(stack.sql(DATABASE, f"SELECT id FROM hotels_suite WHERE hotel_id = '{first}'"))
    assert mine == dataset.free_slots(stack, first).suites.keys()
    everyone = dataset.free_slots(stack).suites.keys()
    assert mine < everyone
    spared = dataset.free_slots(stack, spared=[first, second]).suites.keys()
    assert spared < everyone - mine


def test_what_holds_the_target_back_is_gone_afterwards():
    def computing():
        mine = psutil.Process().children()
        return [child for child in mine if "getppid" in " ".join(child.cmdline())]

    def interrupted():
        with busy.held_back(str(usable_cpus()[0])):
            wait_for(lambda: len(computing()) == 1, seconds=5, what="The process that computes")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert computing() == []
