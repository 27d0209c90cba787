"""Statements of our own, which are sent again and again: each a file, <app>/sql/<name>.sql."""

from pathlib import Path
from typing import Any

from django.db import connection

_BACKEND = Path(__file__).resolve().parents[2]


def statement(app: str, name: str) -> str:
    """The app's statement of that name, without its comments: it is sent with each request."""
    lines = (_BACKEND / app / "sql" / f"{name}.sql").read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("--"))


def rows(sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Every row of `sql`; `values` by their names in it. Postgres keeps it prepared where the
    backend is ours (base.py); Django's own has cursors of one kind alone.
    """
    cursor_of = getattr(connection, "prepared_cursor", connection.cursor)
    with cursor_of() as cursor:
        cursor.execute(sql, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def row(sql: str, values: dict[str, Any]) -> tuple[Any, ...] | None:
    """Its first row, or None."""
    found = rows(sql, values)
    return found[0] if found else None
