"""A large dataset, which replaces the data for a time."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.interrupts import uninterrupted
from load_lab.paths import current_state
from load_lab.stack.database import TEMPLATE, copy_database, drop_databases, rename_databases
from load_lab.stack.engine import Engine
from load_lab.stack.reference import DATABASE

LARGE_DATABASE = "hotel_grown"
_SQL = Path(__file__).parent / "sql"
_SPARE_DATABASE = "hotel_aside"
# For the large dataset, its indexes, and the WAL that Postgres writes for them.
_FREE_BYTES = 10 * 1024**3
_BATCHES = 20
# The nights of the data (backend/hotels/data.py): the interval between copies.
_NIGHTS = 1461
_SUITES_PER_HOTEL = 100


@dataclass(frozen=True)
class Size:
    """Size of the large dataset, and the factor for the bookings of one hotel (`tenfold`)."""

    hotels: int = 2_000
    bookings: int = 10_000_000
    tenfold: int = 10


def check_disk() -> None:
    """Check the free disk space.

    Raises:
        LabError: it is too small for Postgres's data directory.
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
def large_database(engine: Engine, size: Size, tenfold_hotel: str) -> Iterator[None]:
    """Create the large dataset in a second database; remove it afterwards, whichever is active."""
    try:
        copy_database(engine, TEMPLATE, LARGE_DATABASE)
        _fill(engine, size, tenfold_hotel)
        yield
    finally:
        with uninterrupted("Removing the grown database first; a moment."), engine.empty_caches():
            _restore(engine)


def swap(engine: Engine) -> None:
    """Exchange the two databases by renaming them, without a copy."""
    with uninterrupted("Exchanging the databases first; a moment."), engine.empty_caches():
        rename_databases(
            engine,
            (DATABASE, _SPARE_DATABASE),
            (LARGE_DATABASE, DATABASE),
            (_SPARE_DATABASE, LARGE_DATABASE),
        )


def _restore(engine: Engine) -> None:
    """Restore the stack's database as loaded, and remove the other databases."""
    # A copy, since an exchange may have been interrupted at any point.
    copy_database(engine, TEMPLATE, DATABASE)
    drop_databases(engine, LARGE_DATABASE, _SPARE_DATABASE)


def _fill(engine: Engine, size: Size, tenfold_hotel: str) -> None:
    # Building the indexes after the rows is faster: 7 minutes instead of 17.
    with without_indexes(engine, LARGE_DATABASE, "hotels_booking", "hotels_booking_customers"):
        _add(engine, size, tenfold_hotel)
    with step("Collecting statistics"):
        engine.sql(LARGE_DATABASE, "VACUUM ANALYZE", "CHECKPOINT")


def _add(engine: Engine, size: Size, tenfold_hotel: str) -> None:
    with step(f"Adding bookings to one hotel, {size.tenfold} times what it had"):
        # In later years, with the same guests. Links first: they are derived from the original
        # bookings.
        parameters = {"hotel": tenfold_hotel, "copies": size.tenfold - 1}
        _insert(engine, "tenfold_links", **parameters)
        _insert(engine, "tenfold_bookings", **parameters, nights=_NIGHTS)
    hotels = size.hotels - _count(engine, "hotel")
    with step(f"Adding {hotels} hotels"):
        # The address is the number of the batch in which a hotel gets its bookings.
        _insert(engine, "grown_hotels", hotels=hotels, batches=_BATCHES)
        _insert(engine, "grown_suites", suites=_SUITES_PER_HOTEL)
    missing = max(size.bookings - _count(engine, "booking"), 0)
    nights_per_suite = -(-missing // max(hotels * _SUITES_PER_HOTEL, 1))
    for batch in range(_BATCHES):
        with step(f"Adding {missing} bookings, {batch + 1}/{_BATCHES}"):
            # A night every other day, in every suite of the batch, with one guest.
            _insert(engine, "grown_bookings", each=nights_per_suite, batch=batch)


def _count(engine: Engine, table: str) -> int:
    return int(engine.sql(LARGE_DATABASE, f"SELECT count(*) FROM hotels_{table}")[0])  # noqa: S608


def _insert(engine: Engine, statement: str, **values: object) -> None:
    """Run sql/<statement>.sql without triggers: checking each row's foreign keys would take longer
    than inserting the rows.
    """
    text = Template((_SQL / f"{statement}.sql").read_text()).substitute(values)
    engine.sql(LARGE_DATABASE, "SET session_replication_role = replica", text)


# Constraints that have or need an index: primary keys, unique and exclusion constraints. Foreign
# keys come last, since they refer to the others.
_CONSTRAINTS = """
SELECT format({form}) FROM pg_constraint
WHERE conrelid = ANY('{{{tables}}}'::regclass[]) AND contype IN ('p', 'u', 'x', 'f')
ORDER BY contype = 'f', conname
"""
_CONSTRAINT_COLUMNS = "conrelid::regclass, conname"
_ADD = f"'ALTER TABLE %s ADD CONSTRAINT %I %s', {_CONSTRAINT_COLUMNS}, pg_get_constraintdef(oid)"
_DROP = f"'ALTER TABLE %s DROP CONSTRAINT %I', {_CONSTRAINT_COLUMNS}"
# The indexes that remain after dropping the constraints.
_INDEXES = """
SELECT {what} FROM pg_index
WHERE indrelid = ANY('{{{tables}}}'::regclass[]) ORDER BY indexrelid
"""
# Memory for sorting. Postgres builds an index larger than effective_cache_size with buffer files:
# the exclusion constraint's for 10 million bookings in 340 s instead of 130.
_BUILD = (
    "SET statement_timeout = 0",
    "SET maintenance_work_mem = '1GB'",
    "SET effective_cache_size = '8GB'",
)


@contextmanager
def without_indexes(engine: Engine, database: str, *tables: str) -> Iterator[None]:
    """Drop the indexes and keys of `tables`; restore them if the block ends without an error."""
    names = ",".join(tables)

    def query(statement: str, **parts: str) -> list[str]:
        return engine.sql(database, statement.format(tables=names, **parts))

    keys = query(_CONSTRAINTS, form=_ADD)
    for statement in reversed(query(_CONSTRAINTS, form=_DROP)):
        engine.sql(database, statement)
    indexes = query(_INDEXES, what="pg_get_indexdef(indexrelid)")
    for statement in query(_INDEXES, what="'DROP INDEX ' || indexrelid::regclass"):
        engine.sql(database, statement)
    yield
    for number, statement in enumerate([*indexes, *keys], 1):
        with step(f"Building the indexes again, {number}/{len(indexes) + len(keys)}"):
            engine.sql(database, *_BUILD, statement)
