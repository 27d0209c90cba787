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
class Wish:
    """A booking request: suite, nights and customers by number."""

    suite: int
    first: int
    nights: int
    customers: tuple[int, ...]

    def overlaps(self, other: "Wish") -> bool:
        shares = self.first < other.first + other.nights and other.first < self.first + self.nights
        return self.suite == other.suite and shares


wishes = st.builds(
    Wish,
    suite=st.integers(0, SUITES - 1),
    first=st.integers(0, 8),
    nights=st.integers(1, 4),
    customers=st.permutations(range(CUSTOMERS)).map(lambda all_: tuple(all_[:CAPACITY])),
)
keys = st.sampled_from([None, *KEYS])
UNKNOWN = "6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10"
# Invalid bookings, rejected with 400 for every key.
FORMS: dict[str, dict[str, Any]] = {
    "no night": {"check_out": str(FIRST_NIGHT - timedelta(days=400))},
    "no date": {"check_in": "2031-02-30"},
    "nobody": {"customers": []},
    "no suite": {"suite": None},
}
# Bookings that can't be made; with a key of another booking, the answer is 422.
REFUSED: dict[str, tuple[dict[str, Any], int]] = {
    "suite unknown": ({"suite": UNKNOWN}, 404),
    "customer unknown": ({"customers": [UNKNOWN]}, 404),
    "too many": ({"customers": [f"{UNKNOWN[:-1]}{n}" for n in range(CAPACITY + 1)]}, 400),
}


@dataclass(frozen=True)
class Given:
    """The answer stored for a key."""

    wish: Wish
    status: int
    body: Any


class BookingMachine(RuleBasedStateMachine):
    """The model: `made` has the expected bookings, `given` the expected answer of each key, and
    `old` the keys whose expired answers may still be in the table.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[str, Wish] = {}
        self.given: dict[str, Given] = {}
        self.old: set[str] = set()

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

    @rule(wish=wishes, key=keys)
    def book(self, wish: Wish, key: str | None) -> None:
        before = self.given.get(key or "")
        if before is None:
            self._act(wish, key)
        elif before.wish == wish:
            self._check_replayed(key, self._post(self._body(wish), key))
        else:
            self._check_reused(self._post(self._body(wish), key))

    @precondition(lambda self: self.given)
    @rule(data=st.data())
    def repeat_in_other_letters(self, data: Any) -> None:
        key = self._known(data)
        body = self._body(self.given[key].wish)
        spelled = dict(reversed(body.items())) | {"suite": body["suite"].upper(), "more": 1}
        self._check_replayed(key, self._post(spelled, key, indent=3))

    @precondition(lambda self: self.given)
    @rule(data=st.data(), wish=wishes)
    def another_body(self, data: Any, wish: Wish) -> None:
        key = self._known(data)
        if self.given[key].wish != wish:
            self._check_reused(self._post(self._body(wish), key))

    @rule(wish=wishes, key=keys, form=st.sampled_from(sorted(FORMS)))
    def no_booking(self, wish: Wish, key: str | None, form: str) -> None:
        assert self._post(self._body(wish) | FORMS[form], key).status_code == 400

    @rule(wish=wishes, key=keys, why=st.sampled_from(sorted(REFUSED)))
    def refused(self, wish: Wish, key: str | None, why: str) -> None:
        change, status = REFUSED[why]
        answer = self._post(self._body(wish) | change, key)
        assert answer.status_code == (422 if key in self.given else status)

    @rule(wish=wishes, key=st.sampled_from(["", "a b", "ä", "x" * 256, "\x7f"]))
    def malformed_key(self, wish: Wish, key: str) -> None:
        answer = self._post(self._body(wish), key)
        assert answer.status_code == 400
        assert list(answer.json()["error"]["fields"]) == ["Idempotency-Key"]

    @precondition(lambda self: self.given)
    @rule(data=st.data())
    def expire(self, data: Any) -> None:
        key = self._known(data)
        self._age(key, services.LIFETIME)
        del self.given[key]
        self.old.add(key)

    @precondition(lambda self: self.given)
    @rule(data=st.data())
    def nearly_expire(self, data: Any) -> None:
        self._age(self._known(data), services.LIFETIME - timedelta(minutes=5))

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def remove_a_booking(self, data: Any) -> None:
        """Delete a booking: its nights are free again, and the answer of its key remains."""
        # In order of creation, because an order by random ids would not be reproducible.
        pk = data.draw(st.sampled_from(list(self.made)))
        Booking.objects.get(pk=pk).delete()
        del self.made[pk]

    @invariant()
    def the_database_is_as_the_model(self) -> None:
        assert {str(pk) for pk in Booking.objects.values_list("pk", flat=True)} == set(self.made)
        kept = set(StoredAnswer.objects.values_list("key", flat=True))
        assert kept - self.old == set(self.given)
        self.old &= kept
        assert selectors.hotel_version(self.hotel.pk) == self.version

    def teardown(self) -> None:
        for model in (StoredAnswer, Booking, Suite, Hotel, Customer):
            model.objects.all().delete()

    def _act(self, wish: Wish, key: str | None) -> None:
        """Send a booking with an unused key; it succeeds if its nights are free."""
        taken = any(wish.overlaps(other) for other in self.made.values())
        self.old.discard(key or "")
        others = len(self.old)
        answer = self._post(self._body(wish), key)
        assert answer.status_code == (409 if taken else 201)
        assert "Idempotency-Replayed" not in answer.headers
        if taken:
            assert answer.json()["error"]["code"] == "slot_taken"
        else:
            self.made[answer.json()["id"]] = wish
            self.version += 1
        if key is not None:
            self.given[key] = Given(wish, answer.status_code, answer.json())
            # Each new answer deletes two expired ones.
            assert StoredAnswer.objects.filter(key__in=self.old).count() == max(0, others - 2)

    def _check_replayed(self, key: str | None, answer: Any) -> None:
        before = self.given[key or ""]
        assert (answer.status_code, answer.json()) == (before.status, before.body)
        assert answer.headers["Idempotency-Replayed"] == "true"

    def _check_reused(self, answer: Any) -> None:
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "key_reused")

    def _body(self, wish: Wish) -> dict[str, Any]:
        check_in = FIRST_NIGHT + timedelta(days=wish.first)
        return {
            "suite": str(self.suites[wish.suite].pk),
            "check_in": str(check_in),
            "check_out": str(check_in + timedelta(days=wish.nights)),
            "customers": [str(self.customers[number].pk) for number in wish.customers],
        }

    def _post(self, body: dict[str, Any], key: str | None, indent: int | None = None) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        said = json.dumps(body, indent=indent)
        # The connection is outside a transaction, as in a worker.
        return APIClient().generic(
            "POST", "/api/booking/", said, content_type="application/json", headers=headers
        )

    def _known(self, data: Any) -> str:
        return data.draw(st.sampled_from(sorted(self.given)))

    def _age(self, key: str, age: Any) -> None:
        StoredAnswer.objects.filter(key=key).update(created_at=timezone.now() - age)
