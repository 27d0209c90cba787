"""Django's Postgres backend, with prepared statements and connection checks without a query."""

import select
from typing import Any

from django.db.backends.postgresql import base
from django.db.backends.utils import CursorWrapper
from psycopg.pq import TransactionStatus

# poll() always reports POLLHUP and POLLERR as well.
_EVENTS = select.POLLIN | select.POLLPRI | select.POLLRDHUP


class DatabaseWrapper(base.DatabaseWrapper):
    """Loaded by Django as the backend `config.postgres`."""

    def is_usable(self) -> bool:
        """Return whether the connection is still open (CONN_HEALTH_CHECKS).

        Django sends `SELECT 1` and waits. A server that ends a connection sends an error or closes
        the socket, and the kernel has received that by now. Without either, the connection is
        usable and no query is needed.
        """
        return _is_idle(self.connection) or super().is_usable()

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a connection as Django does, but replace a pool's lost connection at once.

        psycopg's own check queries Postgres each time. From the second lost connection on it
        pauses, for 1 s, then 2 s, and the worker is blocked.
        """
        connection = super().get_new_connection(conn_params)
        while self.pool and not _is_idle(connection):
            # The pool does not reuse a closed connection; it opens a new one.
            connection.close()
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection

    def prepared_cursor(self) -> CursorWrapper:
        """Return a cursor that sends statements and parameters separately.

        From the sixth execution on a connection, the statement is prepared (psycopg's
        `prepare_threshold`): Postgres parses it once and can reuse its plan. Django's own cursors
        put the values into the text, so each statement is a new one.
        """
        self.close_if_health_check_failed()
        self.ensure_connection()
        with self.wrap_database_errors:
            cursor = base.ServerBindingCursor(self.connection)  # type: ignore[call-arg]
            wrap = self.make_debug_cursor if self.queries_logged else self.make_cursor
            return wrap(cursor)  # type: ignore[arg-type]


def _is_idle(connection: Any) -> bool:
    """Return whether the connection is idle and has received no unexpected data."""
    if connection is None or connection.pgconn.transaction_status != TransactionStatus.IDLE:
        return False
    poller = select.poll()
    poller.register(connection.fileno(), _EVENTS)
    return not poller.poll(0)
