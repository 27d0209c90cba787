"""Prepared statements. Each is a file, <app>/sql/<name>.sql."""

from pathlib import Path
from typing import Any

from django.db import connection

_BACKEND = Path(__file__).resolve().parents[2]


def statement(app: str, name: str) -> str:
    """Return the app's statement `name` without its comments, as it is sent with each request."""
    lines = (_BACKEND / app / "sql" / f"{name}.sql").read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("--"))


def rows(sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return every row of `sql`; `values` are its named parameters.

    The statement is prepared if the database backend is config.postgres (base.py). Django's backend
    has only one kind of cursor.
    """
    cursor_of = getattr(connection, "prepared_cursor", connection.cursor)
    with cursor_of() as cursor:
        cursor.execute(sql, values)
        result: list[tuple[Any, ...]] = cursor.fetchall()
        return result


def row(sql: str, values: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the first row of `sql`, or None."""
    result = rows(sql, values)
    return result[0] if result else None
