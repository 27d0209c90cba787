"""Load the lab's dataset."""

from typing import Any, Protocol

from config import env
from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import connection, transaction
from lab_settings.kinds import Switch
from ops.commands import DatabaseCommand, whole_number
from ops.copying import lift_timeouts

from hotels.data import NIGHTS, Sizes
from hotels.loading import HotelData

WORKBENCH_OFF = (
    "LAB_WORKBENCH=off: the workbench has no tables. To enable it and load its data: "
    "lab set LAB_WORKBENCH=on"
)
# flag: default, minimum, maximum
_NUMBERS = {
    "--seed": ("LAB_DATA_SEED", 0, 2**31),
    "--hotels": ("LAB_DATA_HOTELS", 1, 100_000),
    "--suites-per-hotel": ("LAB_DATA_SUITES_PER_HOTEL", 1, 10_000),
    "--bookings-per-suite": ("LAB_DATA_BOOKINGS_PER_SUITE", 0, NIGHTS // 2),
    "--customers": ("LAB_DATA_CUSTOMERS", 10, 10_000_000),
    "--posts": ("LAB_DATA_POSTS", 100, 100_000_000),
}


class DataSet(Protocol):
    """Data that is loaded together."""

    command: str

    def exists(self) -> bool: ...
    def describe(self) -> str: ...
    def clear(self) -> None: ...
    def load(self) -> str: ...


class Command(DatabaseCommand):
    help = (
        "Load hotels, suites, customers and bookings, or the workbench's posts. The same seed and "
        "sizes give the same rows."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        for flag, (variable, minimum, maximum) in _NUMBERS.items():
            parser.add_argument(
                flag,
                type=whole_number(minimum, maximum),
                # A string, so that argparse checks it like the flag's value.
                default=str(getattr(env.lab_settings(), variable)),
                help=f"{minimum} to {maximum}; default: {variable}",
            )
        parser.add_argument(
            "--workbench",
            action="store_true",
            help="Load the workbench's data instead of the hotels.",
        )
        parser.add_argument("--reload", action="store_true", help="Delete all existing rows first.")
        parser.add_argument(
            "--if-empty", action="store_true", help="Exit with code 0 if the tables have data."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        data = _workbench(options) if options["workbench"] else _hotels(options)
        if options["if_empty"] and data.exists():
            self.stdout.write("The data is already loaded.")
            return
        with transaction.atomic():
            lift_timeouts()
            _prepare_tables(data, reload=options["reload"])
            description = data.load()
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        self.stdout.write(f"Loaded {description}.")


def _hotels(options: dict[str, Any]) -> DataSet:
    names = ("hotels", "suites_per_hotel", "bookings_per_suite", "customers")
    return HotelData(options["seed"], Sizes(*(options[name] for name in names)))


def _workbench(options: dict[str, Any]) -> DataSet:
    if settings.LAB.LAB_WORKBENCH is Switch.OFF:
        raise CommandError(WORKBENCH_OFF, returncode=2)
    # Its models can't be imported unless the app is installed.
    from workbench.data import WorkbenchData

    return WorkbenchData(options["seed"], options["posts"])


def _prepare_tables(data: DataSet, *, reload: bool) -> None:
    if reload:
        data.clear()
    elif data.exists():
        raise CommandError(
            f"The data is already loaded: {data.describe()}. To delete all rows, also "
            f"those written since, and load again: manage.py {data.command} --reload"
        )
