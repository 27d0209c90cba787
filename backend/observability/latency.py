"""Latency of Postgres as the server sees it: round trips, and the cost of a new connection."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

ROUNDS = 3
# libpq's names of the authentication methods, the likely ones first, and Postgres's names; with
# `none` (trust) a server requires no authentication.
# https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-REQUIRE-AUTH
_METHODS = {"scram-sha-256": "scram-sha-256", "md5": "md5", "none": "trust", "password": "password"}
_OTHER_METHOD = "authentication method requirement"


def measure() -> dict[str, Any]:
    """Return the duration of round trips and of a new connection, in ms, and how that logs in."""
    with connection.cursor() as cursor:
        # Opens the connection, or checks that a persistent one is still open.
        cursor.execute("SELECT 1")
        trips = [_milliseconds(lambda: cursor.execute("SELECT 1")) for _ in range(ROUNDS)]
    method, connection_ms = _new_connection()
    return {"round_trips_ms": trips, "new_connection_ms": connection_ms, "postgres_auth": method}


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return round((time.perf_counter() - start) * 1000, 3)


def _log_in(**options: str) -> None:
    """Open a connection, like a request that has none, and close it."""
    fresh: BaseDatabaseWrapper = connection.copy()
    # A pool would return an existing connection.
    fresh.settings_dict["OPTIONS"].pop("pool", None)
    fresh.settings_dict["OPTIONS"].update(options)
    try:
        fresh.ensure_connection()
    finally:
        fresh.close()


def _new_connection() -> tuple[str, float]:
    """Return how a new connection logs in, and how long that takes, in ms.

    libpq rejects a server that requests another method than `require_auth`.
    """
    for required, name in _METHODS.items():
        try:
            return name, _milliseconds(partial(_log_in, require_auth=required))
        except OperationalError as error:
            if _OTHER_METHOD not in str(error):
                raise
    return "other", _milliseconds(_log_in)
