"""What Postgres's sessions wait for, by pg_stat_activity, on a connection from before the load."""

from collections import Counter
from contextlib import suppress
from typing import Any, Literal

import psycopg

# `cpu`: active without a wait event. `holder`: idle in a transaction, so that it may hold locks.
# `wal`: for a flush of the write-ahead log, its own or another session's.
SessionState = Literal["cpu", "lock", "wal", "io", "internal", "sleep", "holder", "idle"]

_QUERY = """
SELECT CASE
         WHEN state LIKE 'idle in transaction%' THEN 'holder'
         WHEN state <> 'active' THEN 'idle'
         WHEN wait_event_type IS NULL THEN 'cpu'
         WHEN wait_event_type = 'Lock' THEN 'lock'
         WHEN wait_event LIKE 'WAL%' THEN 'wal'
         WHEN wait_event_type = 'IO' THEN 'io'
         WHEN wait_event_type = 'Timeout' THEN 'sleep'
         WHEN wait_event_type = 'Client' THEN 'idle'
         ELSE 'internal'
       END, count(*)
FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
GROUP BY 1
"""


class Sessions:
    """Looks at the sessions of all clients but its own."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection
        self._connection.autocommit = True

    def states(self) -> Counter[SessionState] | None:
        """Return the number of sessions in each state; None while Postgres does not answer."""
        with suppress(psycopg.Error):
            return Counter(dict(self._connection.execute(_QUERY).fetchall()))
        return None

    def close(self) -> None:
        self._connection.close()
