"""The copy of each booking's customer ids in Postgres equals its links after every kind of change,
by any client.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import call_command
from django.db import connection, connections, transaction
from hotels.models import Booking, Customer, Suite
from lab_settings.kinds import Implementation

# Postgres rejects ALTER TABLE in a transaction with pending deferred checks on the table.
pytestmark = pytest.mark.django_db(transaction=True)

# Number of bookings whose copy differs from their links.
_DIFFERENCES = """
SELECT count(*) FROM hotels_booking booking WHERE customer_ids <> ARRAY(
    SELECT customer_id FROM hotels_booking_customers
    WHERE booking_id = booking.id ORDER BY customer_id
)
"""


def _count_differences() -> int:
    with connection.cursor() as cursor:
        cursor.execute(_DIFFERENCES)
        (count,) = cursor.fetchone()
    return count


def _copy(booking: Booking) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT customer_ids FROM hotels_booking WHERE id = %s", [booking.pk])
        (ids,) = cursor.fetchone()
    return ids


def _booking(suite: Suite, day: int) -> Booking:
    return Booking.objects.create(
        suite=suite, check_in=f"2031-03-{day:02}", check_out=f"2031-03-{day + 1:02}"
    )


def test_copy_follows_every_change_of_the_relation(suite, customers):
    booking, other = _booking(suite, 1), _booking(suite, 3)
    pks = sorted(customer.pk for customer in customers)
    assert len(pks) > 2
    assert _copy(booking) == []
    booking.customers.add(*reversed(customers))
    assert _copy(booking) == pks
    booking.customers.remove(pks[0])
    assert _copy(booking) == pks[1:]
    other.customers.set(customers[:1])
    booking.customers.set(customers[:2])
    assert _copy(booking) == sorted(customer.pk for customer in customers[:2])
    customers[0].bookings.clear()
    assert _copy(other) == []
    assert _copy(booking) == [customers[1].pk]


def test_moved_link_leaves_its_old_booking(suite, customers):
    booking, other = _booking(suite, 1), _booking(suite, 3)
    booking.customers.set(customers[:2])
    booking.customers.through.objects.filter(customer=customers[0]).update(booking=other)
    assert _copy(booking) == [customers[1].pk]
    assert _copy(other) == [customers[0].pk]


def _delete_customer(customer_pk) -> None:
    """Delete the customer on a separate connection, like a concurrent client."""
    try:
        Customer.objects.get(pk=customer_pk).delete()
    finally:
        connections.close_all()


def _wait_for_blocked_process() -> None:
    deadline = time.monotonic() + 20
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while cursor.fetchone()[0] == 0:
            assert time.monotonic() < deadline
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")


def test_concurrent_changes_of_one_booking_both_reach_the_copy(suite, customers):
    """The second change waits for the first, then reads the links again."""
    bookings = [_booking(suite, day) for day in (1, 3, 5)]
    for booking in bookings:
        booking.customers.set(customers[:3])
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            customers[0].delete()
            other = pool.submit(_delete_customer, customers[1].pk)
            _wait_for_blocked_process()
        other.result(timeout=20)
    assert [_copy(booking) for booking in bookings] == [[customers[2].pk]] * 3


def test_truncated_links_empty_the_copy(suite, customers):
    booking = _booking(suite, 1)
    booking.customers.set(customers[:2])
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE hotels_booking_customers")
    assert _copy(booking) == []


def test_deleted_customer_is_removed_from_the_copy(suite, customers):
    booking = _booking(suite, 1)
    booking.customers.set(customers[:2])
    customers[0].delete()
    assert _copy(booking) == [customers[1].pk]


@pytest.fixture
def without_triggers(db) -> Iterator[None]:
    """Disable the triggers, so that they do not correct the copy."""
    tables = "ALTER TABLE hotels_booking_customers {} TRIGGER USER"
    with connection.cursor() as cursor:
        cursor.execute(tables.format("DISABLE"))
        yield
        cursor.execute(tables.format("ENABLE"))


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "one"}], ids=["plain", "with a key"])
def test_fast_booking_writes_the_copy_without_triggers(
    api, settings, booking_data, without_triggers, headers
):
    settings.LAB = settings.LAB.model_copy(update={"LAB_BOOKING": Implementation.FAST})
    booking_data = {**booking_data, "customers": sorted(booking_data["customers"], reverse=True)}
    assert (
        api.post("/api/booking/", booking_data, format="json", headers=headers).status_code == 201
    )
    assert Booking.objects.get().customers.count() == 2
    assert _count_differences() == 0


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "one"}], ids=["plain", "with a key"])
def test_new_booking_has_the_copy(api, booking_by, booking_data, headers):
    ids = sorted(booking_data["customers"], reverse=True)
    booking_data = {**booking_data, "customers": ids}
    answer = api.post("/api/booking/", booking_data, format="json", headers=headers)
    assert answer.status_code == 201
    booking = Booking.objects.get()
    assert [str(pk) for pk in _copy(booking)] == sorted(ids)
    assert _count_differences() == 0


def test_loaded_data_has_the_copy(without_triggers):
    call_command("load_db", hotels=1, suites_per_hotel=3, bookings_per_suite=4, customers=30)
    assert Booking.objects.count() > 0
    assert _count_differences() == 0
