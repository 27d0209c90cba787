"""Slots that are free to book, for loads beside k6's own."""

import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from load_lab.errors import LabError
from load_lab.stack.engine import Engine
from load_lab.stack.reference import DATABASE

# Like the load generator's: far from the bookings in the data (backend/hotels/data.py).
_FIRST_NIGHT = date(2030, 1, 1)
ONE_NIGHT = timedelta(days=1)
# Unanswered requests of an earlier load may still book nights after the last one.
_GAP = timedelta(days=30)
# Enough suites that clients which use them in turn never compete for a suite's lock.
SUITES = 100
# Like k6's: two guests if the suite has room, so that each booking costs the same.
_GUESTS = 2
_EPOCH = date(1970, 1, 1)
# Years have four digits, here and in the API. ISO dates of that length compare like their text.
_LAST_NIGHT = "9500-01-01"


@dataclass(frozen=True)
class Slots:
    """Free slots from `first_night` on: suites, each with its guests."""

    first_night: date
    suites: dict[str, list[str]]
    # Unique to this measurement, so that no idempotency key is used twice.
    prefix: str

    @property
    def first_day(self) -> int:
        """Return the first night in days since 1970-01-01."""
        return (self.first_night - _EPOCH).days


def free_slots(engine: Engine, hotel: str | None = None, excluded: Iterable[str] = ()) -> Slots:
    """Return slots after every booked night, including k6's leases (k6/hotel/slots.js).

    With a `hotel` only its suites, and never those of the `excluded` hotels.

    Raises:
        LabError: earlier loads have booked all available nights.
    """
    (last_check_out,) = engine.sql(
        DATABASE, "SELECT coalesce(max(check_out), 'epoch') FROM hotels_booking"
    )
    if len(last_check_out) > len(_LAST_NIGHT) or last_check_out >= _LAST_NIGHT:
        raise LabError(
            f"Bookings reach up to {last_check_out}: no nights are left to measure with. Repeat "
            "less often or for fewer seconds; the data as loaded are put back when lab bench ends."
        )
    first = max(_FIRST_NIGHT, date.fromisoformat(last_check_out) + _GAP)
    return Slots(first, _suites(engine, hotel, excluded), f"bench-{secrets.token_hex(8)}-")


def _suites(engine: Engine, hotel: str | None, excluded: Iterable[str]) -> dict[str, list[str]]:
    """Return suites in the order of their random ids, so that they are spread over all hotels."""
    conditions = [f"hotel_id <> '{hotel_id}'" for hotel_id in excluded]
    conditions += [f"hotel_id = '{hotel}'"] if hotel else []
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    # The values are numbers and ids of the lab.
    guests = f"SELECT id FROM hotels_customer ORDER BY id LIMIT {SUITES}"  # noqa: S608
    suites = f"SELECT id || ' ' || capacity FROM hotels_suite {where} ORDER BY id LIMIT {SUITES}"  # noqa: S608
    lines, customers = engine.sql(DATABASE, suites), engine.sql(DATABASE, guests)
    return dict(_assign_guests(lines, customers))


def _assign_guests(lines: list[str], customers: list[str]) -> Iterator[tuple[str, list[str]]]:
    for number, line in enumerate(lines):
        suite, capacity = line.split()
        count = min(_GUESTS, int(capacity), len(customers))
        yield suite, [customers[(number + i) % len(customers)] for i in range(count)]


@contextmanager
def slots_file(slots: Slots) -> Iterator[Path]:
    """Write the slots for scripts/booking.lua to a file; remove it afterwards."""
    lines = [str(slots.first_day), slots.prefix]
    lines += [" ".join([suite, *guests]) for suite, guests in slots.suites.items()]
    with tempfile.NamedTemporaryFile("w", prefix="load-lab-slots-") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        yield Path(file.name)


def count_bookings(engine: Engine) -> int:
    """Return the number of bookings."""
    return int(engine.sql(DATABASE, "SELECT count(*) FROM hotels_booking")[0])
