"""The lab's dataset: the same rows for the same seed and sizes.

No value in a response depends on today's date. Stays are in the years 2026 to 2029; the load
generator books the nights from 2030 on (k6/hotel/slots.js).
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from hotels.models import version_start

FIRST_NIGHT = date(2026, 1, 1)
NIGHTS = (date(2030, 1, 1) - FIRST_NIGHT).days
MAX_STAY = 14
CREATED_AT = datetime(2025, 12, 1, tzinfo=UTC)

# With 45 bookings per suite these make hotel detail 900 to 1,000 KB.
_CAPACITIES = (2, 3, 4, 5, 6)

_CITIES = ("Porto", "Kraków", "Zürich", "Reykjavík", "Thessaloniki", "Gdańsk", "Malmö", "Toulouse")
_NAMES = ("Grand", "Harbour", "Garden", "Park", "Riverside", "Old Town", "Station", "Hillside")
_STREETS = ("Market Street", "Quay Road", "Castle Lane", "Mill Row", "Bridge Street")
_DESCRIPTIONS = (
    "Quiet rooms around a planted courtyard, five minutes from the old town on foot. Breakfast is "
    "served under the plane trees from April on, and there are bicycles for whoever asks.",
    "A listed house with high ceilings, thick walls, and breakfast until eleven. The library has a "
    "fireplace, the bar closes late, and the night porter knows every train by heart.",
    "On the water: every second room looks over the harbour, all of them are bright. The ferries "
    "leave from the door, the kitchen cooks what the boats bring, and the sauna is free.",
    "Small, family-run, and close to the station; late arrivals find a key and a soup. Children "
    "sleep free of charge, dogs are welcome, and the garden has room for both.",
)
_FIRST = ("Ada", "Béla", "Chloé", "Dmitri", "Edsger", "Frances", "Grace", "Håkon", "Jūratė")
_LAST = (
    "Abe",
    "Brandt",
    "Costa",
    "Dvořák",
    "Eriksen",
    "Fiore",
    "Gómez",
    "Hall",
    "Ivanov",
    "Jansen",
)

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Sizes:
    """Number of rows of each kind."""

    hotels: int
    suites_per_hotel: int
    bookings_per_suite: int
    customers: int

    @property
    def bookings(self) -> int:
        return self.hotels * self.suites_per_hotel * self.bookings_per_suite


class Data:
    """Rows of each table. Iterate each method once, in the order of the methods: they share one
    random generator.
    """

    def __init__(self, seed: int, sizes: Sizes) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._sizes = sizes
        self._version = version_start()
        self._customers = [self._uuid() for _ in range(sizes.customers)]
        self._hotels = [self._uuid() for _ in range(sizes.hotels)]
        self._suites = [
            (self._uuid(), hotel, number)
            for hotel in self._hotels
            for number in range(1, sizes.suites_per_hotel + 1)
        ]

    def customers(self) -> Iterator[Row]:
        """Yield id, name, email."""
        for number, pk in enumerate(self._customers):
            first, last = self._random.choice(_FIRST), self._random.choice(_LAST)
            yield pk, f"{first} {last}", f"guest{number}@example.org"

    def hotels(self) -> Iterator[Row]:
        """Yield id, name, address, city, stars, description, version."""
        for number, pk in enumerate(self._hotels, start=1):
            city = self._random.choice(_CITIES)
            address = f"{number} {self._random.choice(_STREETS)}"
            name = f"{self._random.choice(_NAMES)} Hotel {city} {number}"
            description = self._random.choice(_DESCRIPTIONS)
            yield pk, name, address, city, self._random.randint(2, 5), description, self._version

    def suites(self) -> Iterator[Row]:
        """Yield id, hotel, number, capacity, price, version."""
        for pk, hotel, number in self._suites:
            price = Decimal(self._random.randint(4_000, 40_000)) / 100
            yield pk, hotel, number, _capacity(number), price, self._version

    def bookings(self) -> Iterator[tuple[Row, list[Row]]]:
        """Yield each booking with the columns of loading.py, and its (booking, customer) pairs."""
        for suite, _, number in self._suites:
            for check_in, check_out in self._stays():
                pk = self._uuid()
                guests = self._random.sample(self._customers, self._party(_capacity(number)))
                yield (
                    (pk, suite, check_in, check_out, CREATED_AT, sorted(guests)),
                    [(pk, customer) for customer in guests],
                )

    def _stays(self) -> Iterator[tuple[date, date]]:
        """Yield the stays of one suite. Each has a separate period, so none overlap."""
        count = self._sizes.bookings_per_suite
        period = NIGHTS // count if count else 0
        for index in range(count):
            nights = self._random.randint(1, min(period, MAX_STAY))
            start = index * period + self._random.randint(0, period - nights)
            check_in = FIRST_NIGHT + timedelta(days=start)
            yield check_in, check_in + timedelta(days=nights)

    def _party(self, capacity: int) -> int:
        return self._random.randint(1, min(capacity, self._sizes.customers))

    def _uuid(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)


def _capacity(number: int) -> int:
    return _CAPACITIES[number % len(_CAPACITIES)]
