"""For the few statements that the quick paths send again and again."""

from typing import Any, cast

from django.db import connection

from config.postgres.base import DatabaseWrapper


def rows(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Every row of `statement`, which Postgres keeps prepared; `values` by their names in it."""
    with cast("DatabaseWrapper", connection).prepared_cursor() as cursor:
        cursor.execute(statement, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def row(statement: str, values: dict[str, Any]) -> tuple[Any, ...] | None:
    """Its first row, or None."""
    found = rows(statement, values)
    return found[0] if found else None
