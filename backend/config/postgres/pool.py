"""What psycopg's pool is told to do while Postgres gives it no connection."""

from typing import Any

from psycopg import OperationalError
from psycopg_pool import ConnectionPool

NO_CONNECTION = "Postgres gives the pool no connection; the log says why."


def options(size: int, timeout: int) -> dict[str, Any]:
    """psycopg's options of a pool of `size` connections; for one, one waits `timeout` seconds."""
    return {
        "min_size": 1,
        "max_size": size,
        "timeout": timeout,
        # Seconds for which the pool tries again by itself, after pauses that double: it made one
        # of two of an outage of a minute. Each request that needs a connection makes it try.
        # Default: 300.
        "reconnect_timeout": 0,
        "reconnect_failed": refuse_waiting,
    }


def refuse_waiting(pool: ConnectionPool[Any]) -> None:
    """Tell who waits that there is none, rather than let them wait for nothing until their timeout.

    Where the pool still has a connection, it may come back to it, and is waited for.

    Private names, since nothing public reaches who waits: `get_stats` counts them, `max_waiting`
    refuses those who come later, and a pool that was closed can't be opened again.
    """
    with pool._lock:
        if pool._nconns:
            return
        waiting = list(pool._waiting)
        pool._waiting.clear()
    for client in waiting:
        client.fail(OperationalError(NO_CONNECTION))
