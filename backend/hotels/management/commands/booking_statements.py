"""Print the SQL statements of a booking with an Idempotency-Key, for pgbench."""

import json
import re
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any
from uuid import uuid4

from django.core.management.base import CommandError
from django.db import connection, transaction
from idempotency.services import answer_once
from ops.commands import DatabaseCommand

from hotels import services
from hotels.apis import book, book_at_once
from hotels.models import Customer, Suite

NO_DATA = "The tables have no suite or no customer. Load the data: manage.py load_db"
# Later than the nights of any load.
_NIGHT, _NEXT_NIGHT = date(9900, 1, 1), date(9900, 1, 2)
NIGHT_BOOKED = f"The night of {_NIGHT} is already booked. Load new data: manage.py load_db --reload"
# The booking is made in a transaction that is rolled back. There Django uses savepoints, which a
# request does not need.
_SAVEPOINTS = ("SAVEPOINT", "RELEASE")
# psycopg's named placeholder.
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")


class Command(DatabaseCommand):
    help = (
        "Print, as one JSON list, the statements of a booking with an Idempotency-Key as "
        "LAB_BOOKING=fast sends them, without semicolons. Parameters are written as :name with "
        "their type, as pgbench requires; `values` has an example of each. The command creates one "
        "booking and rolls it back."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        booking, statements = _example_booking(), list[dict[str, Any]]()
        with transaction.atomic(), connection.execute_wrapper(partial(_record, statements)):
            answer_once(
                str(uuid4()), booking, partial(book, services.booking_create_fast), book_at_once
            )
            transaction.set_rollback(True)
        if len(statements) != 1:
            raise CommandError(NIGHT_BOOKED)
        self.stdout.write(json.dumps(statements, indent=2))


def _example_booking() -> dict[str, Any]:
    suite, customer = Suite.objects.first(), Customer.objects.first()
    if suite is None or customer is None:
        raise CommandError(NO_DATA)
    nights = {"check_in": _NIGHT, "check_out": _NEXT_NIGHT}
    return {"suite": suite.pk, "customers": [customer.pk], **nights}


def _record(
    statements: list[dict[str, Any]],
    execute: Callable[..., Any],
    statement: str,
    values: dict[str, Any] | None,
    *arguments: Any,
) -> Any:
    if not statement.startswith(_SAVEPOINTS):
        parameters = {name: _literal(value) for name, value in (values or {}).items()}
        statements.append(
            {"sql": _PLACEHOLDER.sub(r":\1", statement).strip(), "values": parameters}
        )
    return execute(statement, values, *arguments)


def _literal(value: Any) -> str:
    """Return the value as Postgres reads it, without quotes."""
    return f"{{{','.join(map(str, value))}}}" if isinstance(value, list) else str(value)
