"""Code that the management commands share."""

import argparse
from collections.abc import Callable
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError


class DatabaseCommand(BaseCommand):
    """A command that reports a database error as one message instead of a traceback."""

    # System checks would query the database first, and fail with a less readable error.
    requires_system_checks = ()

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except (DatabaseError, psycopg.Error) as error:  # COPY raises psycopg's own error
            raise CommandError(
                f"Postgres rejected the command: {reason(error)}. Nothing was changed. Check that "
                "Postgres runs (`lab status`) and that the tables exist (`manage.py migrate`)."
            ) from None


def reason(error: Exception) -> str:
    """Return the first line of a database error; the others show the statement."""
    return str(error).strip().splitlines()[0]


def whole_number(minimum: int, maximum: int) -> Callable[[str], int]:
    """Return an argparse type: whole numbers from `minimum` to `maximum`."""

    def parse(value: str) -> int:
        if not value.isdecimal() or not minimum <= int(value) <= maximum:
            raise argparse.ArgumentTypeError(
                f"{value} is invalid. Allowed: a whole number from {minimum} to {maximum}"
            )
        return int(value)

    return parse
