"""Loads the data that the lab is measured with."""

from collections.abc import Iterable
from typing import Any

from config import env
from django.core.management.base import CommandError, CommandParser
from django.db import connection, transaction
from ops.commands import DatabaseCommand, whole_number
from tqdm import tqdm

from hotels.data import NIGHTS, Data, Row, Sizes
from hotels.models import Booking, Customer, Hotel, Suite

_LINKS = Booking.customers.through._meta.db_table
_COLUMNS = {
    Customer._meta.db_table: ("id", "name", "email"),
    Hotel._meta.db_table: ("id", "name", "address", "city", "stars", "description", "version"),
    Suite._meta.db_table: ("id", "hotel_id", "number", "capacity", "price", "version"),
    Booking._meta.db_table: ("id", "suite_id", "check_in", "check_out", "created_at"),
    _LINKS: ("booking_id", "customer_id"),
}
# Bookings are sent in batches, since a connection can copy into one table at a time.
_BATCH = 5_000


class Command(DatabaseCommand):
    help = "Load hotels, suites, customers and bookings: the same rows for the same seed and sizes."

    def add_arguments(self, parser: CommandParser) -> None:
        sizes = {
            "--seed": ("LAB_DATA_SEED", 0, 2**31),
            "--hotels": ("LAB_DATA_HOTELS", 1, 100_000),
            "--suites-per-hotel": ("LAB_DATA_SUITES_PER_HOTEL", 1, 10_000),
            "--bookings-per-suite": ("LAB_DATA_BOOKINGS_PER_SUITE", 0, NIGHTS // 2),
            "--customers": ("LAB_DATA_CUSTOMERS", 10, 10_000_000),
        }
        for flag, (variable, least, most) in sizes.items():
            parser.add_argument(
                flag,
                type=whole_number(least, most),
                # A string, so that argparse checks it like the flag.
                default=env.text(variable),
                help=f"{least} to {most}; default: {variable}",
            )
        parser.add_argument("--reload", action="store_true", help="Delete everything first.")
        parser.add_argument(
            "--if-empty", action="store_true", help="Do nothing, and succeed, when there is data."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["if_empty"] and Hotel.objects.exists():
            self.stdout.write("The data is loaded already.")
            return
        sizes = Sizes(
            options["hotels"],
            options["suites_per_hotel"],
            options["bookings_per_suite"],
            options["customers"],
        )
        with transaction.atomic():
            _lift_timeouts()
            _make_room(reload=options["reload"])
            _load(Data(options["seed"], sizes), sizes)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        self.stdout.write(
            f"Loaded {sizes.hotels} hotels, {sizes.hotels * sizes.suites_per_hotel} suites, "
            f"{sizes.customers} customers and {sizes.bookings} bookings."
        )


def _lift_timeouts() -> None:
    """The limits are the API's: large data may copy for longer than any request."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")


def _make_room(*, reload: bool) -> None:
    with connection.cursor() as cursor:
        if reload:
            tables = ", ".join([*_COLUMNS, "idempotency_storedanswer"])
            cursor.execute(f"TRUNCATE {tables}")
        elif Hotel.objects.exists():
            raise CommandError(
                f"The data is loaded: {Hotel.objects.count()} hotels. To delete everything, the "
                "bookings made since too, and load again: manage.py load_db --reload"
            )


def _load(data: Data, sizes: Sizes) -> None:
    total = sizes.customers + sizes.hotels * (1 + sizes.suites_per_hotel) + sizes.bookings
    with tqdm(total=total, unit=" rows", desc="load_db", mininterval=0.5) as bar:
        for model, rows in (
            (Customer, data.customers()),
            (Hotel, data.hotels()),
            (Suite, data.suites()),
        ):
            bar.update(_copy(model._meta.db_table, rows))
        for bookings, links in _batches(data.bookings()):
            bar.update(_copy(Booking._meta.db_table, bookings))
            _copy(_LINKS, links)


def _batches(
    pairs: Iterable[tuple[Row, list[Row]]],
) -> Iterable[tuple[list[Row], list[Row]]]:
    bookings: list[Row] = []
    links: list[Row] = []
    for booking, its_links in pairs:
        bookings.append(booking)
        links.extend(its_links)
        if len(bookings) == _BATCH:
            yield bookings, links
            bookings, links = [], []
    yield bookings, links


def _copy(table: str, rows: Iterable[Row]) -> int:
    """COPY: many times quicker than INSERT. Returns how many rows that were."""
    columns = ", ".join(_COLUMNS[table])
    count = 0
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row(row)
            count += 1
    return count
