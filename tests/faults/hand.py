"""The hand that breaks and mends: what an engine has to be able to do for these tests.

`native.py` has that of the native engine, `docker.py` that of the docker engine, `shared.py` what
is the same for both.
"""

from contextlib import AbstractContextManager
from typing import Protocol

from lab.stack.engine import Engine

Broken = AbstractContextManager[None]


class Hand(Protocol):
    """Each is broken inside, and whole again after it."""

    engine: Engine

    def worker_killed(self) -> Broken:
        """kill -9 of one of the server's workers, which its master replaces."""

    def master_killed(self) -> Broken:
        """kill -9 of the server's first process, which is started again."""

    def stopped(self, service: str) -> Broken:
        """Told to stop, and started again."""

    def frozen(self, service: str) -> Broken:
        """SIGSTOP of all its processes: it takes connections and says nothing."""

    def nginx_reloaded(self) -> Broken:
        """Its configuration is read again: new workers, the old ones finish."""

    def connections_used_up(self) -> Broken:
        """All that Postgres gives to others than its superuser are held, the backend has none."""

    def own_disk(self) -> Broken:
        """Nginx' caches are on a small disk of their own."""

    def disk_full(self) -> Broken:
        """Not a byte is left on that disk, and what is freed is taken at once."""

    def behind_proxy(self) -> Broken:
        """The backend reaches Postgres by way of toxiproxy, with a delay of 1 ms."""

    def slow_database(self, milliseconds: int) -> Broken:
        """That delay is so long."""

    def deployed(self) -> Broken:
        """Another setting, as `lab set` makes it: new workers, the old ones finish."""
