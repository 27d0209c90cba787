"""The bench's data: free slots to book, and a large dataset that is swapped in and out again."""

import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from string import Template

from lab.console import step
from lab.errors import LabError
from lab.interrupts import uninterrupted
from lab.paths import current_state
from lab.stack.database import DATABASE, TEMPLATE, copy_database
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
    """Past every night that anyone has booked, k6's leases (k6/lib/slots.js) included.

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


GROWN = "hotel_grown"
_SQL = Path(__file__).parent / "sql"
_ASIDE = "hotel_aside"
# The grown data, their indexes, and the log that is written meanwhile.
_FREE_BYTES = 10 * 1024**3
_BATCHES = 20
# The nights of the data themselves (backend/hotels/data.py): copies lie past each other.
_NIGHTS = 1461
_SUITES_PER_HOTEL = 100


@dataclass(frozen=True)
class Size:
    """How much the grown database has, and how many times the bookings of the hotel that grew."""

    hotels: int = 2_000
    bookings: int = 10_000_000
    tenfold: int = 10


def check_disk() -> None:
    """Raises:
    LabError: there is too little room where Postgres keeps its data.
    """
    folder = current_state().postgres
    free = shutil.disk_usage(folder).free
    if free < _FREE_BYTES:
        raise LabError(
            f"Too little disk: {free / 1024**3:.1f} GiB are free in {folder}, needed "
            f"{_FREE_BYTES / 1024**3:.0f} GiB for the grown database. Make room, or put the "
            "stack's state elsewhere (LAB_STATE_DIR)."
        )


@contextmanager
def grown_database(engine: Engine, size: Size, tenfold_hotel: str) -> Iterator[None]:
    """The grown database beside the stack's own; gone afterwards, whichever is in place."""
    try:
        copy_database(engine, TEMPLATE, GROWN)
        _fill(engine, size, tenfold_hotel)
        yield
    finally:
        with uninterrupted("Removing the grown database first; a moment."), engine.emptied():
            _put_back(engine)


def swap(engine: Engine) -> None:
    """The other of the two databases is the stack's: without a copy, by their names."""
    with uninterrupted("Exchanging the databases first; a moment."), engine.emptied():
        for old, new in ((DATABASE, _ASIDE), (GROWN, DATABASE), (_ASIDE, GROWN)):
            _rename(engine, old, new)


def _rename(engine: Engine, old: str, new: str) -> None:
    """Postgres renames only a database that nobody is connected to."""
    engine.sql(
        "postgres",
        f"ALTER DATABASE {old} ALLOW_CONNECTIONS false",
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{old}'",  # noqa: S608
        f"ALTER DATABASE {old} RENAME TO {new}",
        f"ALTER DATABASE {new} ALLOW_CONNECTIONS true",
    )


def _put_back(engine: Engine) -> None:
    """The stack's database as loaded, and nothing beside it."""
    # A copy, since an exchange may have been broken off anywhere.
    copy_database(engine, TEMPLATE, DATABASE)
    for name in (GROWN, _ASIDE):
        engine.sql("postgres", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _fill(engine: Engine, size: Size, tenfold_hotel: str) -> None:
    # Building the indexes after the rows is faster: 7 minutes instead of 17.
    with without_indexes(engine, GROWN, "hotels_booking", "hotels_booking_customers"):
        _add(engine, size, tenfold_hotel)
    with step("Collecting statistics"):
        engine.sql(GROWN, "VACUUM ANALYZE", "CHECKPOINT")


def _add(engine: Engine, size: Size, tenfold_hotel: str) -> None:
    with step(f"Adding bookings to one hotel, {size.tenfold} times what it had"):
        # In the years after, with the same guests. The links first: they look at the bookings.
        again = {"hotel": tenfold_hotel, "copies": size.tenfold - 1}
        _insert(engine, "tenfold_links", **again)
        _insert(engine, "tenfold_bookings", **again, nights=_NIGHTS)
    hotels = size.hotels - _count(engine, "hotel")
    with step(f"Adding {hotels} hotels"):
        # An address tells the batch in which a hotel gets its bookings.
        _insert(engine, "grown_hotels", hotels=hotels, batches=_BATCHES)
        _insert(engine, "grown_suites", suites=_SUITES_PER_HOTEL)
    missing = max(size.bookings - _count(engine, "booking"), 0)
    each = -(-missing // max(hotels * _SUITES_PER_HOTEL, 1))
    for batch in range(_BATCHES):
        with step(f"Adding {missing} bookings, {batch + 1}/{_BATCHES}"):
            # A night every other day in every suite of the batch, with one guest.
            _insert(engine, "grown_bookings", each=each, batch=batch)


def _count(engine: Engine, table: str) -> int:
    return int(engine.sql(GROWN, f"SELECT count(*) FROM hotels_{table}")[0])  # noqa: S608


def _insert(engine: Engine, statement: str, **values: object) -> None:
    """Run sql/<statement>.sql, without triggers: to look each row's foreign keys up would take
    longer than the rows.
    """
    text = Template((_SQL / f"{statement}.sql").read_text()).substitute(values)
    engine.sql(GROWN, "SET session_replication_role = replica", text)


# Of the constraints those that have or need an index: primary keys, unique, exclusion; and foreign
# keys, at the end, since they refer to the others.
_CONSTRAINTS = """
SELECT format({form}) FROM pg_constraint
WHERE conrelid = ANY('{{{tables}}}'::regclass[]) AND contype IN ('p', 'u', 'x', 'f')
ORDER BY contype = 'f', conname
"""
_NAMED = "conrelid::regclass, conname"
_ADD = f"'ALTER TABLE %s ADD CONSTRAINT %I %s', {_NAMED}, pg_get_constraintdef(oid)"
_DROP = f"'ALTER TABLE %s DROP CONSTRAINT %I', {_NAMED}"
# What is left of the indexes when those are gone.
_INDEXES = """
SELECT {what} FROM pg_index
WHERE indrelid = ANY('{{{tables}}}'::regclass[]) ORDER BY indexrelid
"""
# Room to sort in. An index that is larger than what is said to be cached is built by way of files:
# the exclusion constraint's of 10 million bookings in 340 s instead of 130.
_BUILD = (
    "SET statement_timeout = 0",
    "SET maintenance_work_mem = '1GB'",
    "SET effective_cache_size = '8GB'",
)


@contextmanager
def without_indexes(engine: Engine, database: str, *tables: str) -> Iterator[None]:
    """`tables` without indexes and keys; as they were when the block ends well."""
    listed = ",".join(tables)

    def found(query: str, **parts: str) -> list[str]:
        return engine.sql(database, query.format(tables=listed, **parts))

    keys = found(_CONSTRAINTS, form=_ADD)
    for statement in reversed(found(_CONSTRAINTS, form=_DROP)):
        engine.sql(database, statement)
    indexes = found(_INDEXES, what="pg_get_indexdef(indexrelid)")
    for statement in found(_INDEXES, what="'DROP INDEX ' || indexrelid::regclass"):
        engine.sql(database, statement)
    yield
    for number, statement in enumerate([*indexes, *keys], 1):
        with step(f"Building the indexes again, {number}/{len(indexes) + len(keys)}"):
            engine.sql(database, *_BUILD, statement)
