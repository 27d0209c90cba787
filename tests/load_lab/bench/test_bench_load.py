"""The load of `lab bench`: free nights, and a target with less CPU."""

from types import SimpleNamespace

import psutil
import pytest

from load_lab.errors import LabError
from load_lab.machine import busy_loop
from load_lab.machine.cpus import usable_cpus
from load_lab.stack.native.supervision import wait_for
from load_lab.stack.reference import DATABASE
from load_lab.targets.reference import bookings


@pytest.mark.parametrize("last_check_out", ["9500-01-01", "9999-12-31", "10421-01-01"])
def test_fully_booked_calendar_is_one_message(last_check_out):
    engine = SimpleNamespace(sql=lambda *_: [last_check_out])
    with pytest.raises(LabError, match=f"reach up to {last_check_out}: no nights are left"):
        bookings.free_slots(engine)


def test_load_does_not_book_in_excluded_hotel(stack):
    """Another row reads the page of that hotel, so its size must not change."""
    first, second, *_ = stack.sql(DATABASE, "SELECT id FROM hotels_hotel ORDER BY id")
    hotel_suites = set(
        stack.sql(DATABASE, f"SELECT id FROM hotels_suite WHERE hotel_id = '{first}'")
    )
    assert hotel_suites == bookings.free_slots(stack, first).suites.keys()
    all_suites = bookings.free_slots(stack).suites.keys()
    assert hotel_suites < all_suites
    excluded = bookings.free_slots(stack, excluded=[first, second]).suites.keys()
    assert excluded < all_suites - hotel_suites


def test_process_that_slows_target_ends_on_interrupt():
    def busy_loops():
        children = psutil.Process().children()
        return [child for child in children if "getppid" in " ".join(child.cmdline())]

    def interrupt():
        with busy_loop.busy_loops(str(usable_cpus()[0])):
            wait_for(lambda: len(busy_loops()) == 1, seconds=5, what="The process that computes")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert busy_loops() == []
