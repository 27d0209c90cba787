"""Loading data by COPY, many times quicker than by INSERT."""

from collections.abc import Iterable
from typing import Any

from django.db import connection
from tqdm import tqdm

Row = tuple[Any, ...]


def progress(rows: int) -> "tqdm[Any]":
    """The bar that whoever waits for `rows` rows looks at."""
    return tqdm(total=rows, unit=" rows", desc="load_db", mininterval=0.5)


def lift_timeouts() -> None:
    """The limits are the API's: large data may copy for longer than any request."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")


def truncate(*tables: str) -> None:
    """Empty tables, among them all that refer to one of them; their ids begin anew."""
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(tables)} RESTART IDENTITY")


def copy(table: str, columns: Iterable[str], rows: Iterable[Row], *, freeze: bool = False) -> int:
    """Returns how many rows that were. `freeze`: as after a VACUUM, which only a table allows that
    was emptied in this transaction.
    """
    count = 0
    how = " (FREEZE)" if freeze else ""
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN{how}") as target,
    ):
        for row in rows:
            target.write_row(row)
            count += 1
    return count
