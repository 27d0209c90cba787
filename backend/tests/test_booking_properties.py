"""Property tests with Hypothesis: bookings and keys in any order, on the real database.

Each run uses the same examples. For more: pytest --hypothesis-profile=thorough.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta
from itertools import combinations

import pytest
from django.db import connections
from hotels.models import Booking
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from idempotency.models import StoredAnswer
from rest_framework.test import APIClient

from tests.support.booking_machine import BookingMachine

pytestmark = pytest.mark.django_db(transaction=True)

# The first and the last possible dates, and a leap day.
ANCHORS = (date.min, date(2032, 2, 25), date.max - timedelta(days=12))
AT_ONCE = 6


@contextmanager
def _example() -> Iterator[None]:
    """Delete all bookings and stored answers after the example."""
    try:
        yield
    finally:
        StoredAnswer.objects.all().delete()
        Booking.objects.all().delete()


def _nights(booking_data, check_in, nights):
    return {
        **booking_data,
        "check_in": str(check_in),
        "check_out": str(check_in + timedelta(days=nights)),
    }


def test_key_identifies_one_request(booking_by):
    run_state_machine_as_test(BookingMachine)


offsets = st.tuples(st.integers(0, 8), st.integers(1, 4))


@given(anchor=st.sampled_from(ANCHORS), stays=st.lists(offsets, min_size=1, max_size=10))
def test_stay_is_rejected_if_and_only_if_nights_overlap(
    booking_by, api, booking_data, suite, anchor, stays
):
    with _example():
        booked = {}
        for first, nights in stays:
            stay = set(range(first, first + nights))
            free = all(stay.isdisjoint(others) for others in booked.values())
            body = _nights(booking_data, anchor + timedelta(days=first), nights)
            assert api.post("/api/booking/", body, format="json").status_code == (
                201 if free else 409
            )
            booked |= {(body["check_in"], body["check_out"]): stay} if free else {}
        (suite_data,) = api.get(f"/api/hotel/{suite.hotel_id}/").json()["suites"]
        assert [(b["check_in"], b["check_out"]) for b in suite_data["bookings"]] == sorted(booked)


requests = st.tuples(st.sampled_from([None, "k1", "k2"]), st.integers(0, 2), st.integers(1, 2))


@given(requests=st.lists(requests, min_size=AT_ONCE, max_size=AT_ONCE))
def test_each_key_has_one_effect_among_concurrent_requests(booking_by, booking_data, requests):
    bodies = [
        _nights(booking_data, date(2031, 5, 1 + first), nights) for _, first, nights in requests
    ]
    keys = [key for key, _, _ in requests]
    with _example(), ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(_post, bodies, keys))
        _check_bookings(bodies, answers)
        for key in {"k1", "k2"} & set(keys):
            numbers = [number for number, request_key in enumerate(keys) if request_key == key]
            _check_key([bodies[n] for n in numbers], [answers[n] for n in numbers])


def _post(body, key):
    """Send the request on a separate connection, like another worker."""
    headers = {} if key is None else {"Idempotency-Key": key}
    try:
        return APIClient().post("/api/booking/", body, format="json", headers=headers)
    finally:
        connections.close_all()


def _is_replay(answer):
    return "Idempotency-Replayed" in answer.headers


def _code(answer):
    return answer.json()["error"]["code"] if answer.status_code != 201 else None


def _overlaps(one, other):
    return one["check_in"] < other["check_out"] and other["check_in"] < one["check_out"]


def _check_bookings(bodies, answers):
    """Check that exactly the created bookings exist, and that each conflict overlaps one."""
    pairs = list(zip(bodies, answers, strict=True))
    created = {a.json()["id"]: b for b, a in pairs if a.status_code == 201 and not _is_replay(a)}
    assert {str(pk) for pk in Booking.objects.values_list("pk", flat=True)} == set(created)
    assert not any(_overlaps(one, other) for one, other in combinations(created.values(), 2))
    for body, answer in pairs:
        if _code(answer) == "slot_taken":
            assert any(_overlaps(body, other) for other in created.values())


def _check_key(bodies, answers):
    """Check that one request took effect; others are replayed, `in_progress` or `key_reused`."""
    effects = [n for n, a in enumerate(answers) if _has_effect(a)]
    assert len(effects) == 1
    first, body = answers[effects[0]], bodies[effects[0]]
    for other, answer in zip(bodies, answers, strict=True):
        if _is_replay(answer):
            assert (answer.status_code, answer.json(), other) == (
                first.status_code,
                first.json(),
                body,
            )
        elif answer is not first and _code(answer) != "in_progress":
            assert (answer.status_code, _code(answer)) == (422, "key_reused")
            assert other != body


def _has_effect(answer):
    return not _is_replay(answer) and (answer.status_code == 201 or _code(answer) == "slot_taken")
