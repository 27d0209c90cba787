"""Django's Postgres backend, but a kept connection is checked without a round trip, and a statement
may be one that Postgres keeps prepared.
"""

import select
from typing import Any

from django.db.backends.postgresql import base
from django.db.backends.utils import CursorWrapper
from psycopg.pq import TransactionStatus

# Hang-ups and errors are told unasked.
_SAID_SOMETHING = select.POLLIN | select.POLLPRI | select.POLLRDHUP


class DatabaseWrapper(base.DatabaseWrapper):
    """Loaded by Django as the backend `config.postgres`."""

    def is_usable(self) -> bool:
        """Whether the connection still lives (CONN_HEALTH_CHECKS).

        Django sends `SELECT 1` and waits. A server that ends a connection says so or hangs up, and
        either has reached the kernel by now: where nothing has, nobody needs to be asked.
        """
        return _is_silent(self.connection) or super().is_usable()

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """As Django does, but a pool's connection that was lost is replaced at once.

        psycopg's own check of what the pool has asks Postgres each time, and pauses after the
        second that is lost: 1 s, then 2 s, for which a worker serves nobody.
        """
        connection = super().get_new_connection(conn_params)
        while self.pool and not _is_silent(connection):
            # Closed it can't be mistaken for a good one, and the pool makes another.
            connection.close()
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection

    def prepared_cursor(self) -> CursorWrapper:
        """A cursor whose statements are sent apart from their values. From the sixth time on the
        connection has one prepared (psycopg's `prepare_threshold`): Postgres plans it once.

        Django's own cursors put the values into the text, so each statement is a new one.
        """
        self.close_if_health_check_failed()
        self.ensure_connection()
        with self.wrap_database_errors:
            cursor = base.ServerBindingCursor(self.connection)  # type: ignore[call-arg]
            wrap = self.make_debug_cursor if self.queries_logged else self.make_cursor
            return wrap(cursor)  # type: ignore[arg-type]


def _is_silent(connection: Any) -> bool:
    """Whether the connection waits for a query, and nothing has come that nobody asked for."""
    if connection is None or connection.pgconn.transaction_status != TransactionStatus.IDLE:
        return False
    waiting = select.poll()
    waiting.register(connection.fileno(), _SAID_SOMETHING)
    return not waiting.poll(0)
