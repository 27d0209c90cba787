"""Idempotency-Key on concurrent connections: exactly one effect in every order."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone
from hotels import selectors
from hotels import services as hotel_services
from hotels.models import Booking
from idempotency import services
from idempotency.models import StoredAnswer
from rest_framework.test import APIClient

pytestmark = pytest.mark.django_db(transaction=True)

CLIENTS = 12
GATE = 4711
# The same statement, but it waits for GATE between its snapshot and its lock.
DELAYED_FETCH = services._LOCK_AND_FETCH.replace(
    "FROM (SELECT) one_row", f"FROM (SELECT pg_advisory_xact_lock_shared({GATE}) OFFSET 0) one_row"
)
DELAYED_BOOKING = hotel_services._BOOK_ONCE.replace(
    "AS ours", f"AS ours FROM (SELECT pg_advisory_xact_lock_shared({GATE}) OFFSET 0) one_row"
)
UNKNOWN = "6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10"
LATER = {"check_in": "2031-09-01", "check_out": "2031-09-02"}


def _post(booking_data, key="k1"):
    """Send the request on a separate connection, like another worker."""
    try:
        return APIClient().post(
            "/api/booking/", booking_data, format="json", headers={"Idempotency-Key": key}
        )
    finally:
        connections.close_all()


def _query(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def _wait_for_blocked_request():
    deadline = time.monotonic() + 20
    query = f"SELECT count(*) FROM pg_locks WHERE objid = {GATE} AND NOT granted"
    while _query(query) == 0:
        assert time.monotonic() < deadline


def _race(monkeypatch, booking_data, first):
    """Return both responses; `first` runs between the lookup and the lock of `booking_data`."""
    _query(f"SELECT pg_advisory_lock({GATE})")
    with ThreadPoolExecutor(1) as pool:
        try:
            with monkeypatch.context() as patch:
                patch.setattr(services, "_LOCK_AND_FETCH", DELAYED_FETCH)
                patch.setattr(hotel_services, "_BOOK_ONCE", DELAYED_BOOKING)
                delayed = pool.submit(_post, booking_data)
                _wait_for_blocked_request()
            before = APIClient().post(
                "/api/booking/", first, format="json", headers={"Idempotency-Key": "k1"}
            )
        finally:
            _query(f"SELECT pg_advisory_unlock({GATE})::text")
        return before, delayed.result()


def test_answer_stored_between_lookup_and_lock_is_replayed(booking_by, booking_data, monkeypatch):
    first, delayed = _race(monkeypatch, booking_data, booking_data)
    assert (first.status_code, delayed.status_code) == (201, 201)
    assert delayed.json() == first.json()
    assert delayed.headers["Idempotency-Replayed"] == "true"
    assert Booking.objects.count() == 1


def test_conflict_stored_between_lookup_and_lock_is_replayed(booking_by, booking_data, monkeypatch):
    other = _post(booking_data, "k0")
    first, delayed = _race(monkeypatch, booking_data, booking_data)
    assert (other.status_code, first.status_code, delayed.status_code) == (201, 409, 409)
    assert delayed.json() == first.json()
    assert delayed.headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    "change",
    [LATER, {"suite": UNKNOWN}, {"customers": [UNKNOWN]}],
    ids=["free nights", "no such suite", "no such customer"],
)
def test_another_body_with_early_lookup_is_422_and_undone(
    booking_by, booking_data, hotel, monkeypatch, change
):
    """In the first case the nights are free, so the booking has to be undone."""
    before = selectors.hotel_version(hotel.pk)
    first, delayed = _race(monkeypatch, {**booking_data, **change}, booking_data)
    assert (first.status_code, delayed.status_code) == (201, 422)
    assert delayed.json()["error"]["code"] == "key_reused"
    assert Booking.objects.count() == 1
    assert selectors.hotel_version(hotel.pk) == before + 1


def test_expired_answer_renewed_before_lock_is_replayed(booking_by, booking_data, monkeypatch):
    _post({**booking_data, **LATER})
    StoredAnswer.objects.update(created_at=timezone.now() - services.LIFETIME)
    first, delayed = _race(monkeypatch, booking_data, booking_data)
    assert delayed.json() == first.json()
    assert Booking.objects.count() == 2


def test_one_of_many_requests_with_one_key_books(booking_by, booking_data, hotel):
    before = selectors.hotel_version(hotel.pk)
    with ThreadPoolExecutor(CLIENTS) as pool:
        for day in range(1, 6):
            body = {
                **booking_data,
                "check_in": f"2031-06-{day:02}",
                "check_out": f"2031-06-{day + 1:02}",
            }
            answers = list(pool.map(_post, [body] * CLIENTS, [f"k{day}"] * CLIENTS))
            created = [answer for answer in answers if answer.status_code == 201]
            assert len({answer.json()["id"] for answer in created}) == 1
            assert sum("Idempotency-Replayed" not in answer.headers for answer in created) == 1
            others = [answer for answer in answers if answer.status_code != 201]
            assert {answer.json()["error"]["code"] for answer in others} <= {"in_progress"}
            assert Booking.objects.count() == day
    assert selectors.hotel_version(hotel.pk) == before + 5


def test_repeat_is_replayed_during_another_repeat(booking_data):
    """The other repeat holds the lock, but every request can read the stored answer."""
    first = _post(booking_data)
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        assert services._lock_and_fetch("k1")
        again = pool.submit(_post, booking_data).result()
    assert again.json() == first.json()
