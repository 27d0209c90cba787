"""Bookings under load, and readers who must see them: through the real stack, while Redis stops,
hangs and comes back. A read that starts after a booking's 201 and does not show it is stale.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import count

import httpx
import pytest

from lab.engine.native.supervision import wait_for

WRITERS = 2
READERS = 3
# Far behind the nights that the load generator books. A new place each time: the data stays.
FIRST_NIGHT = date(2100, 1, 1)
NIGHTS = 300_000
DEFAULTS = {
    "LAB_SERVER": "gunicorn-sync",
    "LAB_DETAIL": "naive",
    "LAB_REDIS_CACHE": "off",
    "LAB_LOCAL_CACHE": "off",
}


@dataclass
class Seen:
    """What writers and readers noted."""

    reads: int = 0
    stale: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)


class Load:
    """Books the suites of one hotel, and reads its page."""

    def __init__(self, url: str) -> None:
        self._api = f"{url}/api"
        hotel = sorted(httpx.get(f"{self._api}/hotel/").json(), key=lambda h: h["id"])[-1]
        self._page = f"{self._api}/hotel/{hotel['id']}/"
        detail = httpx.get(self._page).json()
        self._suites = [suite["id"] for suite in detail["suites"]]
        guests = (b["customers"] for suite in detail["suites"] for b in suite["bookings"])
        self._guest = next(guests)[0]
        self._booked: set[str] = set()
        self._nights = count(random.randrange(NIGHTS))
        self._stop = threading.Event()
        self.seen = Seen()

    @property
    def bookings(self) -> int:
        return len(self._booked)

    def __enter__(self) -> "Load":
        actions = [self._book] * WRITERS + [self._read] * READERS
        self._threads = [threading.Thread(target=self._repeat, args=[a]) for a in actions]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def goes_on(self, bookings: int = 15, reads: int = 40) -> None:
        """Wait until that much more has happened."""
        booked, read = self.bookings + bookings, self.seen.reads + reads
        wait_for(
            lambda: self.bookings >= booked and self.seen.reads >= read,
            seconds=30,
            what=f"{bookings} more bookings and {reads} more reads",
        )

    def _repeat(self, action) -> None:
        with httpx.Client(timeout=30) as client:
            while not self._stop.is_set():
                action(client)

    def _book(self, client: httpx.Client) -> None:
        night = FIRST_NIGHT + timedelta(days=next(self._nights))
        wish = {
            "suite": random.choice(self._suites),
            "check_in": str(night),
            "check_out": str(night + timedelta(days=1)),
            "customers": [self._guest],
        }
        answer = client.post(f"{self._api}/booking/", json=wish)
        self.seen.statuses[answer.status_code] += 1
        if answer.status_code == 201:
            self._booked.add(answer.json()["id"])
            self._read(client)

    def _read(self, client: httpx.Client) -> None:
        due = list(self._booked)
        answer = client.get(self._page)
        self.seen.statuses[answer.status_code] += 1
        self.seen.reads += 1
        if answer.status_code == 200:
            self.seen.stale += [booking for booking in due if booking not in answer.text]


@pytest.fixture(scope="module")
def position(lab, stack):
    """Set the stack's switches; whoever comes after this file finds the defaults."""

    def put(**switches: str) -> None:
        said = lab("set", *(f"{name}={value}" for name, value in {**DEFAULTS, **switches}.items()))
        assert said.code == 0, said.err

    yield put
    put()


@contextmanager
def redis_frozen(stack):
    """SIGSTOP: it takes connections and says nothing."""
    pid = stack._supervision.pid("redis")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def redis_stopped(stack):
    """Its port refuses; what it held is lost."""
    stack._supervision._call("stopProcess", "redis")
    try:
        yield
    finally:
        stack._supervision.start_service("redis")


@pytest.mark.parametrize("server", ["gunicorn-sync", "gunicorn-gthread"])
def test_versioned_never_shows_a_page_without_a_booking_that_was_answered(stack, position, server):
    position(LAB_REDIS_CACHE="versioned", LAB_DETAIL="fast", LAB_SERVER=server)
    with Load(stack.settings().target_url) as load:
        load.goes_on()
        for outage in (redis_frozen, redis_stopped):
            with outage(stack):
                load.goes_on()
            load.goes_on()
            _wait_for_a_hit(stack)
    assert load.seen.stale == []
    assert set(load.seen.statuses) == {200, 201}


def test_page_shows_such_pages(stack, position):
    """The same load finds the fault where it is."""
    position(LAB_REDIS_CACHE="page", LAB_DETAIL="fast")
    with Load(stack.settings().target_url) as load:
        load.goes_on(bookings=5)
    assert load.seen.stale
    assert set(load.seen.statuses) == {200, 201}


def test_a_304_takes_less_than_five_milliseconds(stack, position):
    """Of what a client sees, the quickest quarter: whatever else runs here can only add to it."""
    position(LAB_REDIS_CACHE="versioned")
    api = f"{stack.settings().backend_url}/api/hotel/"
    page = f"{api}{httpx.get(api).json()[0]['id']}/"
    known = {"If-None-Match": httpx.get(page).headers["ETag"]}
    times = []
    with httpx.Client() as client:
        for _ in range(51):
            started = time.perf_counter()
            assert client.get(page, headers=known).status_code == 304
            times.append(time.perf_counter() - started)
    assert sorted(times)[len(times) // 4] < 0.005


def _wait_for_a_hit(stack) -> None:
    before = _redis_hits(stack)
    wait_for(lambda: _redis_hits(stack) > before, seconds=10, what="A hit after the outage")


def _redis_hits(stack) -> float:
    url = f"http://127.0.0.1:{stack.settings().LAB_METRICS_PORT}/metrics"
    wanted = 'lab_cache_answers_total{layer="redis",outcome="hit"}'
    lines = [line for line in httpx.get(url).text.splitlines() if line.startswith(wanted)]
    return sum(float(line.split()[-1]) for line in lines)
