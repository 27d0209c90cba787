"""The fault injector: the interface that each engine implements for these tests.

`native.py` is for the native engine, `docker.py` for the docker engine, `shared.py` has the common
parts.
"""

from contextlib import AbstractContextManager
from typing import Protocol

from lab.stack.engine import Engine

Broken = AbstractContextManager[None]


class Hand(Protocol):
    """Each method injects a fault inside its `with` block and repairs it at the end."""

    engine: Engine

    def worker_killed(self) -> Broken:
        """Kill one of the server's workers with SIGKILL; its master replaces it."""

    def master_killed(self) -> Broken:
        """Kill the server's first process with SIGKILL; it is started again."""

    def stopped(self, service: str) -> Broken:
        """Stop the service, and start it again at the end."""

    def frozen(self, service: str) -> Broken:
        """Send SIGSTOP to all its processes: it accepts connections and does not answer."""

    def nginx_reloaded(self) -> Broken:
        """Reload Nginx's configuration: new workers start, the old ones finish."""

    def connections_used_up(self) -> Broken:
        """Occupy all of Postgres's connections for ordinary users, so that the backend has none."""

    def own_disk(self) -> Broken:
        """Put Nginx's caches on a separate small disk."""

    def disk_full(self) -> Broken:
        """Fill that disk completely, and fill it again as soon as space is freed."""

    def behind_proxy(self) -> Broken:
        """Connect the backend to Postgres through toxiproxy, with a delay of 1 ms."""

    def slow_database(self, milliseconds: int) -> Broken:
        """Set that delay to `milliseconds`."""

    def deployed(self) -> Broken:
        """Change a setting as `lab set` does: new workers start, the old ones finish."""
