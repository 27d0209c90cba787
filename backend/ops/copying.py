"""Load data with COPY, many times faster than with INSERT."""

from collections.abc import Iterable
from typing import Any

from django.db import connection
from tqdm import tqdm

Row = tuple[Any, ...]


def progress(rows: int) -> "tqdm[Any]":
    return tqdm(total=rows, unit=" rows", desc="load_db", mininterval=0.5)


def lift_timeouts() -> None:
    """Disable statement_timeout in this transaction: it is for requests, COPY can take longer."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")


def truncate(*tables: str) -> None:
    """Empty the tables and restart their ids. Include all tables that reference one of them."""
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(tables)} RESTART IDENTITY")


def copy(table: str, columns: Iterable[str], rows: Iterable[Row], *, freeze: bool = False) -> int:
    """Copy the rows and return their number.

    `freeze` writes them as after a VACUUM. Postgres allows that only if the table was emptied in
    this transaction.
    """
    count = 0
    option = " (FREEZE)" if freeze else ""
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN{option}") as target,
    ):
        for row in rows:
            target.write_row(row)
            count += 1
    return count
