"""The load of `lab bench`: free nights, and a target with less CPU."""

from types import SimpleNamespace

import psutil
import pytest

from lab.errors import LabError
from lab.host.cpus import usable_cpus
from lab.stack.database import DATABASE
from lab.stack.native.supervision import wait_for
from lab.suites.bench import busy, dataset


@pytest.mark.parametrize("booked", ["9500-01-01", "9999-12-31", "10421-01-01"])
def test_fully_booked_calendar_is_one_message(booked):
    engine = SimpleNamespace(sql=lambda *_: [booked])
    with pytest.raises(LabError, match=f"reach up to {booked}: no nights are left"):
        dataset.free_slots(engine)


def test_load_does_not_book_in_spared_hotel(stack):
    """Another row reads the page of that hotel, so its size must not change."""
    first, second, *_ = stack.sql(DATABASE, "SELECT id FROM hotels_hotel ORDER BY id")
    mine = set(stack.sql(DATABASE, f"SELECT id FROM hotels_suite WHERE hotel_id = '{first}'"))
    assert mine == dataset.free_slots(stack, first).suites.keys()
    everyone = dataset.free_slots(stack).suites.keys()
    assert mine < everyone
    spared = dataset.free_slots(stack, spared=[first, second]).suites.keys()
    assert spared < everyone - mine


def test_process_that_slows_target_ends_on_interrupt():
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
