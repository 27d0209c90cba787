"""How far Postgres is, as the server sees it: round trips, and what a new connection costs."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

ROUNDS = 3
# libpq's names of the ways to log in, the likely ones first; `none` is what a server asks of whom
# it trusts. https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-REQUIRE-AUTH
_METHODS = {"scram-sha-256": "scram-sha-256", "md5": "md5", "none": "trust", "password": "password"}
_OTHER_METHOD = "authentication method requirement"


def measured() -> dict[str, Any]:
    """Milliseconds of round trips on an open connection and of a new one, and how that logs in."""
    with connection.cursor() as cursor:
        # Opens the connection, or proves that a kept one still lives.
        cursor.execute("SELECT 1")
        trips = [_milliseconds(lambda: cursor.execute("SELECT 1")) for _ in range(ROUNDS)]
    method, connecting = _new_connection()
    return {"round_trips_ms": trips, "new_connection_ms": connecting, "postgres_auth": method}


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return round((time.perf_counter() - began) * 1000, 3)


def _log_in(**options: str) -> None:
    """Open a connection as a request would that has none, and drop it."""
    fresh: BaseDatabaseWrapper = connection.copy()
    # A pool would give one that it has.
    fresh.settings_dict["OPTIONS"].pop("pool", None)
    fresh.settings_dict["OPTIONS"].update(options)
    try:
        fresh.ensure_connection()
    finally:
        fresh.close()


def _new_connection() -> tuple[str, float]:
    """How a connection really logs in, and the ms it takes.

    libpq refuses a server that asks for another way than the one that it was told to require.
    """
    for required, name in _METHODS.items():
        try:
            return name, _milliseconds(partial(_log_in, require_auth=required))
        except OperationalError as error:
            if _OTHER_METHOD not in str(error):
                raise
    return "other", _milliseconds(_log_in)
