"""The fault injector: the interface that each engine implements for these tests.

`native.py` is for the native engine, `docker.py` for the docker engine, `shared.py` has the common
parts.
"""

from contextlib import AbstractContextManager
from typing import Protocol

from load_lab.stack.engine import Engine

Injection = AbstractContextManager[None]


class FaultInjector(Protocol):
    """Each method injects a fault inside its `with` block and repairs it at the end."""

    engine: Engine

    def kill_worker(self) -> Injection:
        """Kill one of the server's workers with SIGKILL; its master replaces it."""

    def kill_master(self) -> Injection:
        """Kill the server's first process with SIGKILL; it is started again."""

    def stop(self, service: str) -> Injection:
        """Stop the service, and start it again at the end."""

    def freeze(self, service: str) -> Injection:
        """Send SIGSTOP to all its processes: it accepts connections and does not answer."""

    def reload_nginx(self) -> Injection:
        """Reload Nginx's configuration: new workers start, the old ones finish."""

    def exhaust_connections(self) -> Injection:
        """Occupy all of Postgres's connections for ordinary users, so that the backend has none."""

    def use_small_disk(self) -> Injection:
        """Put Nginx's caches on a separate small disk."""

    def fill_disk(self) -> Injection:
        """Fill that disk completely, and fill it again as soon as space is freed."""

    def use_proxy(self) -> Injection:
        """Connect the backend to Postgres through toxiproxy, with a delay of 1 ms."""

    def delay_database(self, milliseconds: int) -> Injection:
        """Set that delay to `milliseconds`."""

    def deploy(self) -> Injection:
        """Change a setting as `lab set` does: new workers start, the old ones finish."""
