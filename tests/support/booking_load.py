"""Concurrent bookings and reads, and outages of Redis, for the tests of staleness."""

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

from load_lab.stack.native.supervision import wait_for

WRITERS = 2
READERS = 3
# Far after the nights that the load generator books; a random start, because the data remains.
FIRST_NIGHT = date(2100, 1, 1)
NIGHTS = 300_000


@dataclass
class Records:
    """Records of writers and readers. `stale` has one entry for each booking that was confirmed
    before a page request and is missing in that page: seconds from confirmation to request.
    """

    reads: int = 0
    stale: list[float] = field(default_factory=list)
    slowest: float = 0
    statuses: Counter[int] = field(default_factory=Counter)


class Load:
    """Threads that book the suites of one hotel and read its page."""

    def __init__(self, url: str) -> None:
        self._api = f"{url}/api"
        hotel = sorted(httpx.get(f"{self._api}/hotel/").json(), key=lambda h: h["id"])[-1]
        self.hotel: str = hotel["id"]
        self._page = f"{self._api}/hotel/{self.hotel}/"
        detail = httpx.get(self._page).json()
        self._suites = [suite["id"] for suite in detail["suites"]]
        guests = (b["customers"] for suite in detail["suites"] for b in suite["bookings"])
        self._guest = next(guests)[0]
        self._booking_times: dict[str, float] = {}
        self._nights = count(random.randrange(NIGHTS))
        self._stop = threading.Event()
        self.records = Records()

    def book_once(self) -> None:
        """Make one booking without reading the page, because a read would refresh it."""
        with httpx.Client(timeout=30) as client:
            self._book(client)

    def read_once(self) -> None:
        with httpx.Client(timeout=30) as client:
            self._read(client)

    @property
    def bookings(self) -> int:
        return len(self._booking_times)

    def __enter__(self) -> "Load":
        actions = [self._book_and_read] * WRITERS + [self._read] * READERS
        self._threads = [threading.Thread(target=self._repeat, args=[a]) for a in actions]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for_progress(self, bookings: int = 15, reads: int = 40) -> None:
        """Wait for `bookings` more bookings and `reads` more reads."""
        booked, read = self.bookings + bookings, self.records.reads + reads
        wait_for(
            lambda: self.bookings >= booked and self.records.reads >= read,
            seconds=30,
            what=f"{bookings} more bookings and {reads} more reads",
        )

    def _repeat(self, action) -> None:
        with httpx.Client(timeout=30) as client:
            while not self._stop.is_set():
                action(client)

    def _book_and_read(self, client: httpx.Client) -> None:
        """Make a booking and read the page at once."""
        self._book(client)
        self._read(client)

    def _book(self, client: httpx.Client) -> None:
        night = FIRST_NIGHT + timedelta(days=next(self._nights))
        booking = {
            "suite": random.choice(self._suites),
            "check_in": str(night),
            "check_out": str(night + timedelta(days=1)),
            "customers": [self._guest],
        }
        response = client.post(f"{self._api}/booking/", json=booking)
        self.records.statuses[response.status_code] += 1
        if response.status_code == 201:
            self._booking_times[response.json()["id"]] = time.monotonic()

    def _read(self, client: httpx.Client) -> None:
        bookings, start = list(self._booking_times.items()), time.monotonic()
        response = client.get(self._page)
        self.records.slowest = max(self.records.slowest, time.monotonic() - start)
        self.records.statuses[response.status_code] += 1
        self.records.reads += 1
        if response.status_code == 200:
            page = response.text
            self.records.stale += [start - at for booking, at in bookings if booking not in page]


@contextmanager
def frozen_redis(stack):
    """Freeze Redis with SIGSTOP: it accepts connections and does not answer."""
    pid = stack._supervision.pid("redis")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def stopped_redis(stack):
    """Stop Redis: its port refuses connections, and its data is lost."""
    stack._supervision._call("stopProcess", "redis")
    try:
        yield
    finally:
        stack._supervision.start_service("redis")
