"""Many clients, one slot: Postgres selects one booking, without deadlocks or 500s."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.db import connections
from hotels import selectors
from hotels.models import Booking
from rest_framework.test import APIClient

CLIENTS = 16
ROUNDS = 5


def _post(booking_data, day: int) -> int:
    """Book the night of that day on a separate connection, like another worker."""
    try:
        body = {
            **booking_data,
            "check_in": f"2031-05-{day:02}",
            "check_out": f"2031-05-{day + 1:02}",
        }
        return APIClient().post("/api/booking/", body, format="json").status_code
    finally:
        connections.close_all()


@pytest.mark.django_db(transaction=True)
def test_one_of_many_clients_gets_the_slot(booking_by, booking_data):
    with ThreadPoolExecutor(CLIENTS) as pool:
        for day in range(1, ROUNDS + 1):
            statuses = Counter(pool.map(partial(_post, booking_data), [day] * CLIENTS))
            assert statuses == {201: 1, 409: CLIENTS - 1}
    assert Booking.objects.count() == ROUNDS


@pytest.mark.django_db(transaction=True)
def test_concurrent_bookings_each_raise_the_hotel_version(booking_by, booking_data, hotel):
    """Each waits for the suite's row, then must raise the current version, not an older one."""
    before = selectors.hotel_version(hotel.pk)
    with ThreadPoolExecutor(CLIENTS) as pool:
        assert Counter(pool.map(partial(_post, booking_data), range(1, 29))) == {201: 28}
    assert selectors.hotel_version(hotel.pk) == before + 28
