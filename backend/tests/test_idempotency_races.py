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
HELD_UP = services._LOCK_AND_LOOK.replace(
    "FROM (SELECT) one_row", f"FROM (SELECT pg_advisory_xact_lock_shared({GATE}) OFFSET 0) one_row"
)
HELD_UP_AT_ONCE = hotel_services._BOOK_ONCE.replace(
    "AS ours", f"AS ours FROM (SELECT pg_advisory_xact_lock_shared({GATE}) OFFSET 0) one_row"
)
UNKNOWN = "6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10"
LATER = {"check_in": "2031-09-01", "check_out": "2031-09-02"}


def _post(wish, key="k1"):
    """Send the request on a separate connection, like another worker."""
    try:
        return APIClient().post(
            "/api/booking/", wish, format="json", headers={"Idempotency-Key": key}
        )
    finally:
        connections.close_all()


def _ask(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def _wait_for_who_waits_at_the_gate():
    deadline = time.monotonic() + 20
    waiting = f"SELECT count(*) FROM pg_locks WHERE objid = {GATE} AND NOT granted"
    while _ask(waiting) == 0:
        assert time.monotonic() < deadline


def _late_look(monkeypatch, wish, first):
    """Return the responses to `first` and `wish`; `first` runs between `wish`'s lookup and lock."""
    _ask(f"SELECT pg_advisory_lock({GATE})")
    with ThreadPoolExecutor(1) as pool:
        try:
            with monkeypatch.context() as patch:
                patch.setattr(services, "_LOCK_AND_LOOK", HELD_UP)
                patch.setattr(hotel_services, "_BOOK_ONCE", HELD_UP_AT_ONCE)
                late = pool.submit(_post, wish)
                _wait_for_who_waits_at_the_gate()
            before = APIClient().post(
                "/api/booking/", first, format="json", headers={"Idempotency-Key": "k1"}
            )
        finally:
            _ask(f"SELECT pg_advisory_unlock({GATE})::text")
        return before, late.result()


def test_answer_stored_between_lookup_and_lock_is_replayed(booking_by, wish, monkeypatch):
    first, late = _late_look(monkeypatch, wish, wish)
    assert (first.status_code, late.status_code) == (201, 201)
    assert late.json() == first.json()
    assert late.headers["Idempotency-Replayed"] == "true"
    assert Booking.objects.count() == 1


def test_conflict_stored_between_lookup_and_lock_is_replayed(booking_by, wish, monkeypatch):
    other = _post(wish, "k0")
    first, late = _late_look(monkeypatch, wish, wish)
    assert (other.status_code, first.status_code, late.status_code) == (201, 409, 409)
    assert late.json() == first.json()
    assert late.headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    "change",
    [LATER, {"suite": UNKNOWN}, {"customers": [UNKNOWN]}],
    ids=["would be made", "no such suite", "no such customer"],
)
def test_another_body_with_early_lookup_is_422_and_undone(
    booking_by, wish, hotel, monkeypatch, change
):
    """In the first case the nights are free, so the booking has to be undone."""
    before = selectors.hotel_version(hotel.pk)
    first, late = _late_look(monkeypatch, {**wish, **change}, wish)
    assert (first.status_code, late.status_code) == (201, 422)
    assert late.json()["error"]["code"] == "key_reused"
    assert Booking.objects.count() == 1
    assert selectors.hotel_version(hotel.pk) == before + 1


def test_expired_answer_renewed_before_lock_is_replayed(booking_by, wish, monkeypatch):
    _post({**wish, **LATER})
    StoredAnswer.objects.update(created_at=timezone.now() - services.LIFETIME)
    first, late = _late_look(monkeypatch, wish, wish)
    assert late.json() == first.json()
    assert Booking.objects.count() == 2


def test_one_of_many_requests_with_one_key_books(booking_by, wish, hotel):
    before = selectors.hotel_version(hotel.pk)
    with ThreadPoolExecutor(CLIENTS) as pool:
        for day in range(1, 6):
            wanted = {**wish, "check_in": f"2031-06-{day:02}", "check_out": f"2031-06-{day + 1:02}"}
            answers = list(pool.map(_post, [wanted] * CLIENTS, [f"k{day}"] * CLIENTS))
            made = [answer for answer in answers if answer.status_code == 201]
            assert len({answer.json()["id"] for answer in made}) == 1
            assert sum("Idempotency-Replayed" not in answer.headers for answer in made) == 1
            others = [answer for answer in answers if answer.status_code != 201]
            assert {answer.json()["error"]["code"] for answer in others} <= {"in_progress"}
            assert Booking.objects.count() == day
    assert selectors.hotel_version(hotel.pk) == before + 5


def test_repeat_is_replayed_during_another_repeat(wish):
    """The other repeat holds the lock, but every request can read the stored answer."""
    first = _post(wish)
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        assert services._lock_and_look("k1")
        again = pool.submit(_post, wish).result()
    assert again.json() == first.json()
