"""Many clients that book the same slots at once (test_contention.py).

In a round, 200 clients request 10 slots, so 20 compete for each: 5 consecutive stays in each of
2 suites. Every client has a separate open connection; one loop writes all 200 requests before it
reads an answer. Every second client sends an Idempotency-Key.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from uuid import uuid4

import httpx

from lab.settings import changed
from lab.stack.engine import Engine
from tests.support.raw_http import Answer, Client, post

CLIENTS = 200
SLOTS = 10
SUITES = 2
NIGHTS_PER_STAY = 2
# After the nights of the load generator and of the writers in tests/support/booking_load.py.
FIRST_NIGHT = date(3000, 1, 1)
NIGHTS = 2_000_000
KEYS = "race-"
# 80 of Postgres's 100 connections: 80 bookings run in Postgres at once, the others wait.
SERVER = ("LAB_SERVER=gunicorn-gthread", "LAB_WORKERS=2", "LAB_THREADS=40")


@dataclass
class Seen:
    """Results of the rounds; `wrong` describes each slot not booked by exactly one client."""

    rounds: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    booked: list[str] = field(default_factory=list)
    # Seconds: the longest sending of a round's 200 requests, and the duration of all rounds.
    longest_sending: float = 0
    seconds: float = 0

    @property
    def rate(self) -> float:
        return self.rounds * CLIENTS / self.seconds


@dataclass(frozen=True)
class Slot:
    """A stay in one suite."""

    suite: str
    check_in: date

    def wish(self, guest: str) -> bytes:
        end = self.check_in + timedelta(days=NIGHTS_PER_STAY)
        days = {"check_in": str(self.check_in), "check_out": str(end)}
        return json.dumps({"suite": self.suite, **days, "customers": [guest]}).encode()


class Race:
    """Clients, and the suites and guests that they use, read from the API."""

    def __init__(self, url: str) -> None:
        hotels = httpx.get(f"{url}/api/hotel/", timeout=60).json()
        hotel = min(hotel["id"] for hotel in hotels)
        suites = httpx.get(f"{url}/api/hotel/{hotel}/", timeout=60).json()["suites"]
        self._suites = [suite["id"] for suite in suites[:SUITES]]
        found = {guest for suite in suites for b in suite["bookings"] for guest in b["customers"]}
        self._guests = sorted(found)
        self._night = FIRST_NIGHT + timedelta(days=random.randrange(NIGHTS))
        self._port = httpx.URL(url).port or 80
        self.seen = Seen()

    def run(self, rounds: int, tell: Callable[[int], None]) -> Seen:
        """Run `rounds` rounds; call `tell` with the number of each round."""
        clients = [Client(self._port) for _ in range(CLIENTS)]
        began = time.monotonic()
        try:
            for number in range(rounds):
                tell(number)
                self._round(clients)
        finally:
            for client in clients:
                client.close()
        self.seen.seconds = time.monotonic() - began
        return self.seen

    def _round(self, clients: list[Client]) -> None:
        slots = self._slots()
        wanted = [slots[number % SLOTS] for number in range(CLIENTS)]
        random.shuffle(wanted)
        requests = [self._request(slot, keyed=bool(n % 2)) for n, slot in enumerate(wanted)]
        began = time.monotonic()
        for client, request in zip(clients, requests, strict=True):
            client.send(request)
        self.seen.longest_sending = max(self.seen.longest_sending, time.monotonic() - began)
        self._note(slots, list(zip(wanted, (client.answer() for client in clients), strict=True)))

    def _slots(self) -> list[Slot]:
        """Return the slots of the next round, with new nights."""
        stays = SLOTS // SUITES
        nights = [self._night + timedelta(days=NIGHTS_PER_STAY * stay) for stay in range(stays)]
        self._night += timedelta(days=NIGHTS_PER_STAY * stays)
        return [Slot(suite, night) for suite in self._suites for night in nights]

    def _request(self, slot: Slot, *, keyed: bool) -> bytes:
        key = [f"Idempotency-Key: {KEYS}{uuid4()}"] if keyed else []
        return post("/api/booking/", slot.wish(random.choice(self._guests)), *key)

    def _note(self, slots: list[Slot], answers: list[tuple[Slot, Answer]]) -> None:
        self.seen.rounds += 1
        for slot in slots:
            said = Counter(_said(answer) for wanted, answer in answers if wanted == slot)
            self.seen.codes += said
            if said != {"201": 1, "409 slot_taken": CLIENTS // SLOTS - 1}:
                self.seen.wrong.append(f"round {self.seen.rounds}, {slot}: {dict(said)}")
        self.seen.booked += [a.json["id"] for _, a in answers if a.status == 201]


def _said(answer: Answer) -> str:
    return "201" if answer.status == 201 else f"{answer.status} {answer.code}"


_DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = 'hotel'"


def deadlocks(engine: Engine) -> int:
    """Return the number of deadlocks in Postgres's statistics."""
    return int(engine.sql("hotel", _DEADLOCKS)[0])


def kept(engine: Engine, booked: list[str]) -> int:
    """Return how many bookings with the ids `booked` are in the database."""
    return int(
        engine.sql("hotel", f"SELECT count(*) FROM hotels_booking WHERE {_these(booked)}")[0]
    )


def count_race_bookings(engine: Engine) -> int:
    """Return the number of bookings in the nights of the races."""
    counted = f"SELECT count(*) FROM hotels_booking WHERE check_in >= '{FIRST_NIGHT}'"
    return int(engine.sql("hotel", counted)[0])


def forget(engine: Engine) -> None:
    """Delete the bookings of the races, so that the pages do not grow."""
    of_the_races = f"check_in >= '{FIRST_NIGHT}'"
    links = f"booking_id IN (SELECT id FROM hotels_booking WHERE {of_the_races})"
    engine.sql(
        "hotel",
        f"DELETE FROM hotels_booking_customers WHERE {links}",
        "UPDATE hotels_suite SET version = version + 1 WHERE id IN"
        f" (SELECT suite_id FROM hotels_booking WHERE {of_the_races})",
        f"DELETE FROM hotels_booking WHERE {of_the_races}",
        f"DELETE FROM idempotency_storedanswer WHERE key LIKE '{KEYS}%'",
    )


def _these(booked: list[str]) -> str:
    return f"id = ANY('{{{','.join(booked)}}}')"


@contextmanager
def race_settings(engine: Engine, booking: str) -> Iterator[None]:
    """Set LAB_BOOKING to `booking` and use many workers; restore the settings at the end."""
    before = engine.settings()
    engine.apply(changed(before, [f"LAB_BOOKING={booking}", *SERVER]))
    try:
        yield
    finally:
        engine.apply(before)


def race(engine: Engine, rounds: int, tell: Callable[[int], None] = lambda _: None) -> str:
    """Race, check and delete the bookings; return one line of results.

    Raises:
        AssertionError: a slot has no booking or two bookings, or Postgres found a deadlock.
    """
    before = deadlocks(engine)
    try:
        seen = Race(engine.settings().target_url).run(rounds, tell)
        assert not seen.wrong, seen.wrong[:5]
        assert kept(engine, seen.booked) == count_race_bookings(engine) == rounds * SLOTS
    finally:
        forget(engine)
    assert deadlocks(engine) == before, "Postgres found deadlocks"
    return (
        f"{seen.rounds} rounds, {seen.rounds * CLIENTS} requests in {seen.seconds:.0f} s"
        f" ({seen.rate:.0f}/s), all sent within {seen.longest_sending * 1000:.0f} ms: "
        f"{dict(seen.codes)}, deadlocks 0"
    )
