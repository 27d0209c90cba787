"""Export the counters of this process's psycopg pool as metrics."""

import threading
from collections.abc import Mapping

from django.conf import settings
from django.db import connection

from observability import metrics


class ExportedCounts:
    """The counts already exported, since the pool counts from its start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: object = None
        self._waits = self._milliseconds = 0

    def update(self, pool: object, stats: Mapping[str, int]) -> None:
        """Add what `pool` counted since the last call. A new pool starts at 0."""
        waits, milliseconds = stats.get("requests_queued", 0), stats.get("requests_wait_ms", 0)
        with self._lock:
            if pool is not self._pool:
                self._pool, self._waits, self._milliseconds = pool, 0, 0
            # Another thread may have read the statistics later and be here first.
            new_waits = max(0, waits - self._waits)
            new_milliseconds = max(0, milliseconds - self._milliseconds)
            self._waits += new_waits
            self._milliseconds += new_milliseconds
        metrics.POOL_WAITS.inc(new_waits)
        metrics.POOL_WAIT_SECONDS.inc(new_milliseconds / 1000)


_exported = ExportedCounts()


def count() -> None:
    """Update the metrics after a request. Does nothing without a pool."""
    if settings.LAB.pool_size is not None:
        pool = connection.pool  # type: ignore[attr-defined]
        _exported.update(pool, pool.get_stats())
