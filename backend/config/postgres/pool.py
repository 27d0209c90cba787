"""Options of psycopg's connection pool while Postgres is unavailable."""

from typing import Any

from psycopg import OperationalError
from psycopg_pool import ConnectionPool

NO_CONNECTION = "The pool can't connect to Postgres. See the log for the reason."


def options(size: int, timeout: int) -> dict[str, Any]:
    """Return a pool's options: at most `size` connections; requests wait `timeout` s for one."""
    return {
        "min_size": 1,
        "max_size": size,
        "timeout": timeout,
        # Seconds for which the pool retries by itself, with pauses that double: an outage of one
        # minute became two. With 0, each request that needs a connection triggers a new attempt.
        # Default: 300.
        "reconnect_timeout": 0,
        "reconnect_failed": fail_waiting_requests,
    }


def fail_waiting_requests(pool: ConnectionPool[Any]) -> None:
    """Fail the waiting requests at once, instead of at their timeout.

    While the pool still has a connection they keep waiting, since it may be returned.

    This uses private names, since no public one reaches the waiting requests: `get_stats` counts
    them, `max_waiting` rejects later ones, and a closed pool can't be opened again.
    """
    with pool._lock:
        if pool._nconns:
            return
        clients = list(pool._waiting)
        pool._waiting.clear()
    for client in clients:
        client.fail(OperationalError(NO_CONNECTION))
