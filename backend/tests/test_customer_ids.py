"""The copy of each booking's customers, which Postgres keeps: it says what the links say, whoever
changed them and how.
"""

import pytest
from django.core.management import call_command
from django.db import connection
from hotels.models import Booking, Suite

# Every booking whose copy is not what its links are.
_WRONG = """
SELECT count(*) FROM hotels_booking booking WHERE customer_ids <> ARRAY(
    SELECT customer_id FROM hotels_booking_customers
    WHERE booking_id = booking.id ORDER BY customer_id
)
"""


def _wrong() -> int:
    with connection.cursor() as cursor:
        cursor.execute(_WRONG)
        (count,) = cursor.fetchone()
    return count


def _kept(booking: Booking) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT customer_ids FROM hotels_booking WHERE id = %s", [booking.pk])
        (ids,) = cursor.fetchone()
    return ids


def _booking(suite: Suite, day: int) -> Booking:
    return Booking.objects.create(
        suite=suite, check_in=f"2031-03-{day:02}", check_out=f"2031-03-{day + 1:02}"
    )


def test_it_follows_every_change_of_the_relation(suite, customers):
    booking, other = _booking(suite, 1), _booking(suite, 3)
    pks = sorted(customer.pk for customer in customers)
    assert len(pks) > 2
    assert _kept(booking) == []
    booking.customers.add(*reversed(customers))
    assert _kept(booking) == pks
    booking.customers.remove(pks[0])
    assert _kept(booking) == pks[1:]
    other.customers.set(customers[:1])
    booking.customers.set(customers[:2])
    assert _kept(booking) == sorted(customer.pk for customer in customers[:2])
    customers[0].bookings.clear()
    assert _kept(other) == []
    assert _kept(booking) == [customers[1].pk]


def test_a_link_that_is_moved_leaves_its_old_booking(suite, customers):
    booking, other = _booking(suite, 1), _booking(suite, 3)
    booking.customers.set(customers[:2])
    booking.customers.through.objects.filter(customer=customers[0]).update(booking=other)
    assert _kept(booking) == [customers[1].pk]
    assert _kept(other) == [customers[0].pk]


def test_a_customer_who_is_gone_is_gone_from_it(suite, customers):
    booking = _booking(suite, 1)
    booking.customers.set(customers[:2])
    customers[0].delete()
    assert _kept(booking) == [customers[1].pk]


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "one"}], ids=["plain", "with a key"])
def test_a_booking_that_is_made_has_it(api, booking_by, wish, headers):
    ids = sorted(wish["customers"], reverse=True)
    wish = {**wish, "customers": ids}
    answer = api.post("/api/booking/", wish, format="json", headers=headers)
    assert answer.status_code == 201
    booking = Booking.objects.get()
    assert [str(pk) for pk in _kept(booking)] == sorted(ids)
    assert _wrong() == 0


@pytest.mark.django_db(transaction=True)
def test_data_that_are_loaded_have_it():
    call_command("load_db", hotels=1, suites_per_hotel=3, bookings_per_suite=4, customers=30)
    assert Booking.objects.count() > 0
    assert _wrong() == 0
