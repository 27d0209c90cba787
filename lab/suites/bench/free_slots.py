"""Suites and nights that a load may book: what nobody has booked, each of them once."""

import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

from lab.errors import LabError
from lab.stack.database import DATABASE
from lab.stack.engine import Engine
from lab.suites.bench.sample import Sample

# As the load generator's: far from the data's own bookings (backend/hotels/data.py).
_FIRST_NIGHT = date(2030, 1, 1)
ONE_NIGHT = timedelta(days=1)
# What an earlier load has sent and nobody has answered may still book a night past the last one.
_GAP = timedelta(days=30)
# Enough that clients who go round them never meet in one suite's lock.
SUITES = 100
# As k6's: two guests where the suite has room, so that each booking costs the same.
_GUESTS = 2
_EPOCH = date(1970, 1, 1)
# Years have four digits, here and in the API. ISO dates of that length compare as their text does.
_LAST_NIGHT = "9500-01-01"


@dataclass(frozen=True)
class Slots:
    """What may be booked from `first_night` on: suites, each with its guests."""

    first_night: date
    suites: dict[str, list[str]]
    # Of this measurement alone, so that no key is met twice.
    prefix: str

    @property
    def first_day(self) -> int:
        """The first night in days since 1970."""
        return (self.first_night - _EPOCH).days


def free_slots(engine: Engine, hotel: str | None = None, spared: Iterable[str] = ()) -> Slots:
    """Past every night that anyone has booked, k6's leases (k6/lib/lease.js) included.

    With a `hotel` its suites alone, and never those of the `spared` hotels.

    Raises:
        LabError: earlier loads have booked all nights that there are.
    """
    (booked,) = engine.sql(DATABASE, "SELECT coalesce(max(check_out), 'epoch') FROM hotels_booking")
    if len(booked) > len(_LAST_NIGHT) or booked >= _LAST_NIGHT:
        raise LabError(
            f"Bookings reach up to {booked}: no nights are left to measure with. Repeat less often "
            "or for fewer seconds; the data as loaded are put back when lab bench ends."
        )
    first = max(_FIRST_NIGHT, date.fromisoformat(booked) + _GAP)
    return Slots(first, _suites(engine, hotel, spared), f"bench-{secrets.token_hex(8)}-")


def _suites(engine: Engine, hotel: str | None, spared: Iterable[str]) -> dict[str, list[str]]:
    """Suites in the order of their ids, which is that of chance: spread over all hotels."""
    conditions = [f"hotel_id <> '{each}'" for each in spared]
    conditions += [f"hotel_id = '{hotel}'"] if hotel else []
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    # Numbers and ids of our own.
    guests = f"SELECT id FROM hotels_customer ORDER BY id LIMIT {SUITES}"  # noqa: S608
    suites = f"SELECT id || ' ' || capacity FROM hotels_suite {where} ORDER BY id LIMIT {SUITES}"  # noqa: S608
    found, customers = engine.sql(DATABASE, suites), engine.sql(DATABASE, guests)
    return dict(_with_guests(found, customers))


def _with_guests(found: list[str], customers: list[str]) -> Iterator[tuple[str, list[str]]]:
    for number, line in enumerate(found):
        suite, capacity = line.split()
        count = min(_GUESTS, int(capacity), len(customers))
        yield suite, [customers[(number + i) % len(customers)] for i in range(count)]


@contextmanager
def slots_file(slots: Slots) -> Iterator[Path]:
    """The slots as scripts/booking.lua reads them; gone afterwards."""
    lines = [str(slots.first_day), slots.prefix]
    lines += [" ".join([suite, *guests]) for suite, guests in slots.suites.items()]
    with tempfile.NamedTemporaryFile("w", prefix="load-lab-slots-") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        yield Path(file.name)


def bookings(engine: Engine) -> int:
    """How many there are."""
    return int(engine.sql(DATABASE, "SELECT count(*) FROM hotels_booking")[0])


def check_made(sample: Sample, made: int, connections: int) -> Sample:
    """`sample`, wrong unless every answer made a booking.

    More may be made: each connection's last one, which nobody read, and the same of the warm-up.
    """
    if sample.wrong or sample.requests <= made <= sample.requests + 2 * connections:
        return sample
    return replace(sample, wrong=f"{sample.requests} answers made {made} bookings")
