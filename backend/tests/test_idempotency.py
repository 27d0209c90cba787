"""Idempotency-Key: one request, one effect."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections, transaction
from hotels.models import Booking
from idempotency import services
from idempotency.models import StoredAnswer
from rest_framework.test import APIClient


def _post(api, booking_data, key):
    return api.post("/api/booking/", booking_data, format="json", headers={"Idempotency-Key": key})


@pytest.mark.django_db
def test_repeated_request_returns_the_first_response(api, booking_by, booking_data):
    first = _post(api, booking_data, "k1")
    again = _post(api, booking_data, "k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert Booking.objects.count() == 1


@pytest.mark.django_db
def test_conflict_is_replayed_even_after_the_slot_is_free(api, booking_by, booking_data):
    booking = _post(api, booking_data, "k1").json()
    assert _post(api, booking_data, "k2").status_code == 409
    Booking.objects.filter(pk=booking["id"]).delete()
    assert _post(api, booking_data, "k2").status_code == 409
    assert _post(api, booking_data, "k3").status_code == 201


@pytest.mark.django_db
def test_invalid_input_is_not_stored(api, booking_by, booking_data):
    assert _post(api, {**booking_data, "customers": []}, "k1").status_code == 400
    assert _post(api, booking_data, "k1").status_code == 201


@pytest.mark.django_db
def test_another_body_with_the_same_key_is_422(api, booking_by, booking_data):
    _post(api, booking_data, "k1")
    answer = _post(api, {**booking_data, "check_out": "2031-05-09"}, "k1")
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "key_reused"


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", "has space", "ü", "x" * 256])
def test_malformed_key_is_400(api, booking_data, key):
    answer = _post(api, booking_data, key)
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == ["Idempotency-Key"]


@pytest.mark.django_db
def test_key_expires_and_old_answers_are_deleted(api, booking_data):
    _post(api, booking_data, "k1")
    _post(api, {**booking_data, "check_in": "2031-07-01", "check_out": "2031-07-02"}, "k2")
    expiry = {"created_at": StoredAnswer.objects.get(key="k1").created_at - services.LIFETIME}
    StoredAnswer.objects.update(created_at=expiry["created_at"] - timedelta(seconds=1))
    assert _post(api, booking_data, "k1").status_code == 409
    assert list(StoredAnswer.objects.values_list("key", flat=True)) == ["k1"]


@pytest.mark.django_db(transaction=True)
def test_repeat_during_the_first_request_is_409_in_progress(booking_data):
    def post():
        try:
            return _post(APIClient(), booking_data, "k1")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        services._lock_and_fetch("k1")
        answer = pool.submit(post).result()
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "in_progress"
    assert answer.headers["Retry-After"] == "1"
    assert Booking.objects.count() == 0
