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

from load_lab.settings import update_settings
from load_lab.stack.engine import Engine
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
class Results:
    """Results of the rounds; `wrong` describes each slot not booked by exactly one client."""

    rounds: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    booking_ids: list[str] = field(default_factory=list)
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

    def body(self, guest: str) -> bytes:
        end = self.check_in + timedelta(days=NIGHTS_PER_STAY)
        dates = {"check_in": str(self.check_in), "check_out": str(end)}
        return json.dumps({"suite": self.suite, **dates, "customers": [guest]}).encode()


class Race:
    """Clients, and the suites and guests that they use, read from the API."""

    def __init__(self, url: str) -> None:
        hotels = httpx.get(f"{url}/api/hotel/", timeout=60).json()
        hotel = min(hotel["id"] for hotel in hotels)
        suites = httpx.get(f"{url}/api/hotel/{hotel}/", timeout=60).json()["suites"]
        self._suites = [suite["id"] for suite in suites[:SUITES]]
        guests = {guest for suite in suites for b in suite["bookings"] for guest in b["customers"]}
        self._guests = sorted(guests)
        self._night = FIRST_NIGHT + timedelta(days=random.randrange(NIGHTS))
        self._port = httpx.URL(url).port or 80
        self.results = Results()

    def run(self, rounds: int, report_round: Callable[[int], None]) -> Results:
        """Run `rounds` rounds; call `tell` with the number of each round."""
        clients = [Client(self._port) for _ in range(CLIENTS)]
        start = time.monotonic()
        try:
            for number in range(rounds):
                report_round(number)
                self._round(clients)
        finally:
            for client in clients:
                client.close()
        self.results.seconds = time.monotonic() - start
        return self.results

    def _round(self, clients: list[Client]) -> None:
        slots = self._slots()
        choices = [slots[number % SLOTS] for number in range(CLIENTS)]
        random.shuffle(choices)
        requests = [self._request(slot, keyed=bool(n % 2)) for n, slot in enumerate(choices)]
        start = time.monotonic()
        for client, request in zip(clients, requests, strict=True):
            client.send(request)
        self.results.longest_sending = max(self.results.longest_sending, time.monotonic() - start)
        self._record(
            slots, list(zip(choices, (client.answer() for client in clients), strict=True))
        )

    def _slots(self) -> list[Slot]:
        """Return the slots of the next round, with new nights."""
        stays = SLOTS // SUITES
        nights = [self._night + timedelta(days=NIGHTS_PER_STAY * stay) for stay in range(stays)]
        self._night += timedelta(days=NIGHTS_PER_STAY * stays)
        return [Slot(suite, night) for suite in self._suites for night in nights]

    def _request(self, slot: Slot, *, keyed: bool) -> bytes:
        key = [f"Idempotency-Key: {KEYS}{uuid4()}"] if keyed else []
        return post("/api/booking/", slot.body(random.choice(self._guests)), *key)

    def _record(self, slots: list[Slot], answers: list[tuple[Slot, Answer]]) -> None:
        self.results.rounds += 1
        for slot in slots:
            outcomes = Counter(_outcome(answer) for choice, answer in answers if choice == slot)
            self.results.codes += outcomes
            if outcomes != {"201": 1, "409 slot_taken": CLIENTS // SLOTS - 1}:
                self.results.wrong.append(f"round {self.results.rounds}, {slot}: {dict(outcomes)}")
        self.results.booking_ids += [a.json["id"] for _, a in answers if a.status == 201]


def _outcome(answer: Answer) -> str:
    return "201" if answer.status == 201 else f"{answer.status} {answer.code}"


_DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = 'hotel'"


def deadlocks(engine: Engine) -> int:
    """Return the number of deadlocks in Postgres's statistics."""
    return int(engine.sql("hotel", _DEADLOCKS)[0])


def count_bookings(engine: Engine, ids: list[str]) -> int:
    """Return how many bookings with these `ids` are in the database."""
    return int(
        engine.sql("hotel", f"SELECT count(*) FROM hotels_booking WHERE {_with_ids(ids)}")[0]
    )


def count_race_bookings(engine: Engine) -> int:
    """Return the number of bookings in the nights of the races."""
    query = f"SELECT count(*) FROM hotels_booking WHERE check_in >= '{FIRST_NIGHT}'"
    return int(engine.sql("hotel", query)[0])


def delete_bookings(engine: Engine) -> None:
    """Delete the bookings of the races, so that the pages do not grow."""
    condition = f"check_in >= '{FIRST_NIGHT}'"
    links = f"booking_id IN (SELECT id FROM hotels_booking WHERE {condition})"
    engine.sql(
        "hotel",
        f"DELETE FROM hotels_booking_customers WHERE {links}",
        "UPDATE hotels_suite SET version = version + 1 WHERE id IN"
        f" (SELECT suite_id FROM hotels_booking WHERE {condition})",
        f"DELETE FROM hotels_booking WHERE {condition}",
        f"DELETE FROM idempotency_storedanswer WHERE key LIKE '{KEYS}%'",
    )


def _with_ids(ids: list[str]) -> str:
    return f"id = ANY('{{{','.join(ids)}}}')"


@contextmanager
def race_settings(engine: Engine, booking: str) -> Iterator[None]:
    """Set LAB_BOOKING to `booking` and use many workers; restore the settings at the end."""
    before = engine.settings()
    engine.apply(update_settings(before, [f"LAB_BOOKING={booking}", *SERVER]))
    try:
        yield
    finally:
        engine.apply(before)


def race(engine: Engine, rounds: int, report_round: Callable[[int], None] = lambda _: None) -> str:
    """Race, check and delete the bookings; return one line of results.

    Raises:
        AssertionError: a slot has no booking or two bookings, or Postgres found a deadlock.
    """
    before = deadlocks(engine)
    try:
        results = Race(engine.settings().target_url).run(rounds, report_round)
        assert not results.wrong, results.wrong[:5]
        assert (
            count_bookings(engine, results.booking_ids)
            == count_race_bookings(engine)
            == rounds * SLOTS
        )
    finally:
        delete_bookings(engine)
    assert deadlocks(engine) == before, "Postgres found deadlocks"
    return (
        f"{results.rounds} rounds, {results.rounds * CLIENTS} requests in {results.seconds:.0f} s"
        f" ({results.rate:.0f}/s), all sent within {results.longest_sending * 1000:.0f} ms: "
        f"{dict(results.codes)}, deadlocks 0"
    )
