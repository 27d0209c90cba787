"""What Postgres's sessions wait for, by pg_stat_activity, on a connection from before the load."""

import threading
import time
from collections import Counter
from typing import Any

import psycopg

from load_lab.machine.cpus import bind
from load_lab.machine.observation import SessionState

# Since Postgres 17 the names of wait events are like WalSync instead of WALSync.
_QUERY = """
SELECT CASE
         WHEN state LIKE 'idle in transaction%%' THEN 'holder'
         WHEN state <> 'active' THEN 'idle'
         WHEN wait_event_type IS NULL THEN 'cpu'
         WHEN wait_event_type = 'Lock' AND wait_event = 'advisory' THEN 'advisory'
         WHEN wait_event_type = 'Lock' AND wait_event = 'relation' THEN 'table'
         WHEN wait_event_type = 'Lock' AND wait_event = 'extend' THEN 'internal'
         WHEN wait_event_type = 'Lock' THEN 'lock'
         WHEN wait_event ILIKE 'WAL%%' THEN 'wal'
         WHEN wait_event_type = 'IO' THEN 'io'
         WHEN wait_event_type = 'Timeout' THEN 'sleep'
         WHEN wait_event_type = 'Client' THEN 'idle'
         ELSE 'internal'
       END, count(*)
FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND (%(database)s = '' OR datname = %(database)s)
GROUP BY 1
"""
_STEP_SECONDS, _FRESH_SECONDS = 0.1, 0.3


class Sessions:
    """Looks at the sessions of a database ("": of all) but its own, in a thread: a Postgres that
    answers late must delay no other look.
    """

    def __init__(
        self, connection: "psycopg.Connection[Any]", cpus: set[int], database: str = ""
    ) -> None:
        self._connection, self._cpus = connection, cpus
        self._parameters = {"database": database}
        self._connection.autocommit = True
        self._at, self._latest = 0.0, Counter[SessionState]()
        # CPU seconds of the thread so far.
        self.cost = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def latest(self) -> Counter[SessionState] | None:
        """Return the number of sessions in each state; None while Postgres does not answer."""
        is_fresh = time.monotonic() - self._at < _FRESH_SECONDS
        return self._latest if is_fresh else None

    def close(self) -> None:
        """Stop looking; a Postgres that does not answer ends the connection later."""
        self._stop.set()

    def _look(self) -> None:
        bind(self._cpus)
        with self._connection:
            while not self._stop.wait(_STEP_SECONDS):
                try:
                    rows = self._connection.execute(_QUERY, self._parameters).fetchall()
                except psycopg.Error:
                    return
                self._latest, self._at = Counter(dict(rows)), time.monotonic()
                self.cost = time.thread_time()
