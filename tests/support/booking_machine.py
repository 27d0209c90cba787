"""The booking route compared with a model; Hypothesis tries any order of steps."""

import json
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone
from hotels import selectors
from hotels.models import Booking, Customer, Hotel, Suite
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from idempotency import services
from idempotency.models import StoredAnswer
from rest_framework.test import APIClient

SUITES, CAPACITY, CUSTOMERS = 2, 2, 3
FIRST_NIGHT = date(2031, 5, 1)
# Few keys, so that steps share them.
KEYS = ("a", "b", "c", '"d"', "~" * 255)


@dataclass(frozen=True)
class BookingRequest:
    """A booking request: suite, nights and customers by number."""

    suite: int
    first: int
    nights: int
    customers: tuple[int, ...]

    def overlaps(self, other: "BookingRequest") -> bool:
        shares = self.first < other.first + other.nights and other.first < self.first + self.nights
        return self.suite == other.suite and shares


booking_requests = st.builds(
    BookingRequest,
    suite=st.integers(0, SUITES - 1),
    first=st.integers(0, 8),
    nights=st.integers(1, 4),
    customers=st.permutations(range(CUSTOMERS)).map(lambda all_: tuple(all_[:CAPACITY])),
)
keys = st.sampled_from([None, *KEYS])
UNKNOWN = "6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10"
# Invalid bookings, rejected with 400 for every key.
INVALID_FIELDS: dict[str, dict[str, Any]] = {
    "no night": {"check_out": str(FIRST_NIGHT - timedelta(days=400))},
    "no date": {"check_in": "2031-02-30"},
    "nobody": {"customers": []},
    "no suite": {"suite": None},
}
# Bookings that can't be made; with a key of another booking, the answer is 422.
IMPOSSIBLE_FIELDS: dict[str, tuple[dict[str, Any], int]] = {
    "suite unknown": ({"suite": UNKNOWN}, 404),
    "customer unknown": ({"customers": [UNKNOWN]}, 404),
    "too many": ({"customers": [f"{UNKNOWN[:-1]}{n}" for n in range(CAPACITY + 1)]}, 400),
}


@dataclass(frozen=True)
class Reply:
    """The answer stored for a key."""

    request: BookingRequest
    status: int
    body: Any


class BookingMachine(RuleBasedStateMachine):
    """The model: `bookings` has the expected ones, `replies` the expected reply to each key, and
    `expired` the keys whose expired answers may still be in the table.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bookings: dict[str, BookingRequest] = {}
        self.replies: dict[str, Reply] = {}
        self.expired: set[str] = set()

    @initialize()
    def rows(self) -> None:
        self.hotel = Hotel.objects.create(name="H", address="", city="", stars=1, description="")
        price = Decimal("1.00")
        self.suites = [
            Suite.objects.create(hotel=self.hotel, number=n, capacity=CAPACITY, price=price)
            for n in range(SUITES)
        ]
        self.customers = [Customer.objects.create(name="G", email="") for _ in range(CUSTOMERS)]
        self.version = selectors.hotel_version(self.hotel.pk)

    @rule(request=booking_requests, key=keys)
    def book(self, request: BookingRequest, key: str | None) -> None:
        reply = self.replies.get(key or "")
        if reply is None:
            self._post_unused_key(request, key)
        elif reply.request == request:
            self._check_replayed(key, self._post(self._body(request), key))
        else:
            self._check_reused(self._post(self._body(request), key))

    @precondition(lambda self: self.replies)
    @rule(data=st.data())
    def repeat_with_other_spelling(self, data: Any) -> None:
        key = self._choose_key(data)
        body = self._body(self.replies[key].request)
        variant = dict(reversed(body.items())) | {"suite": body["suite"].upper(), "more": 1}
        self._check_replayed(key, self._post(variant, key, indent=3))

    @precondition(lambda self: self.replies)
    @rule(data=st.data(), request=booking_requests)
    def reuse_key(self, data: Any, request: BookingRequest) -> None:
        key = self._choose_key(data)
        if self.replies[key].request != request:
            self._check_reused(self._post(self._body(request), key))

    @rule(request=booking_requests, key=keys, name=st.sampled_from(sorted(INVALID_FIELDS)))
    def post_invalid_fields(self, request: BookingRequest, key: str | None, name: str) -> None:
        assert self._post(self._body(request) | INVALID_FIELDS[name], key).status_code == 400

    @rule(request=booking_requests, key=keys, reason=st.sampled_from(sorted(IMPOSSIBLE_FIELDS)))
    def post_impossible_fields(self, request: BookingRequest, key: str | None, reason: str) -> None:
        fields, status = IMPOSSIBLE_FIELDS[reason]
        response = self._post(self._body(request) | fields, key)
        assert response.status_code == (422 if key in self.replies else status)

    @rule(request=booking_requests, key=st.sampled_from(["", "a b", "ä", "x" * 256, "\x7f"]))
    def post_malformed_key(self, request: BookingRequest, key: str) -> None:
        response = self._post(self._body(request), key)
        assert response.status_code == 400
        assert list(response.json()["error"]["fields"]) == ["Idempotency-Key"]

    @precondition(lambda self: self.replies)
    @rule(data=st.data())
    def expire(self, data: Any) -> None:
        key = self._choose_key(data)
        self._set_age(key, services.LIFETIME)
        del self.replies[key]
        self.expired.add(key)

    @precondition(lambda self: self.replies)
    @rule(data=st.data())
    def nearly_expire(self, data: Any) -> None:
        self._set_age(self._choose_key(data), services.LIFETIME - timedelta(minutes=5))

    @precondition(lambda self: self.bookings)
    @rule(data=st.data())
    def remove_booking(self, data: Any) -> None:
        """Delete a booking: its nights are free again, and the answer of its key remains."""
        # In order of creation, because an order by random ids would not be reproducible.
        pk = data.draw(st.sampled_from(list(self.bookings)))
        Booking.objects.get(pk=pk).delete()
        del self.bookings[pk]

    @invariant()
    def database_matches_model(self) -> None:
        assert {str(pk) for pk in Booking.objects.values_list("pk", flat=True)} == set(
            self.bookings
        )
        stored_keys = set(StoredAnswer.objects.values_list("key", flat=True))
        assert stored_keys - self.expired == set(self.replies)
        self.expired &= stored_keys
        assert selectors.hotel_version(self.hotel.pk) == self.version

    def teardown(self) -> None:
        for model in (StoredAnswer, Booking, Suite, Hotel, Customer):
            model.objects.all().delete()

    def _post_unused_key(self, request: BookingRequest, key: str | None) -> None:
        """Send a booking with an unused key; it succeeds if its nights are free."""
        conflict = any(request.overlaps(other) for other in self.bookings.values())
        self.expired.discard(key or "")
        expired_count = len(self.expired)
        response = self._post(self._body(request), key)
        assert response.status_code == (409 if conflict else 201)
        assert "Idempotency-Replayed" not in response.headers
        if conflict:
            assert response.json()["error"]["code"] == "slot_taken"
        else:
            self.bookings[response.json()["id"]] = request
            self.version += 1
        if key is not None:
            self.replies[key] = Reply(request, response.status_code, response.json())
            # Each new answer deletes two expired ones.
            assert StoredAnswer.objects.filter(key__in=self.expired).count() == max(
                0, expired_count - 2
            )

    def _check_replayed(self, key: str | None, response: Any) -> None:
        reply = self.replies[key or ""]
        assert (response.status_code, response.json()) == (reply.status, reply.body)
        assert response.headers["Idempotency-Replayed"] == "true"

    def _check_reused(self, response: Any) -> None:
        assert (response.status_code, response.json()["error"]["code"]) == (422, "key_reused")

    def _body(self, request: BookingRequest) -> dict[str, Any]:
        check_in = FIRST_NIGHT + timedelta(days=request.first)
        return {
            "suite": str(self.suites[request.suite].pk),
            "check_in": str(check_in),
            "check_out": str(check_in + timedelta(days=request.nights)),
            "customers": [str(self.customers[number].pk) for number in request.customers],
        }

    def _post(self, body: dict[str, Any], key: str | None, indent: int | None = None) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        content = json.dumps(body, indent=indent)
        # The connection is outside a transaction, as in a worker.
        return APIClient().generic(
            "POST", "/api/booking/", content, content_type="application/json", headers=headers
        )

    def _choose_key(self, data: Any) -> str:
        return data.draw(st.sampled_from(sorted(self.replies)))

    def _set_age(self, key: str, age: Any) -> None:
        StoredAnswer.objects.filter(key=key).update(created_at=timezone.now() - age)
