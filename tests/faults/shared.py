"""Faults that work the same on both engines, whose services listen on the same ports."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import psutil
import psycopg

from load_lab.settings import LOOPBACK, update_settings
from load_lab.stack.engine import Engine
from tests.support.background import repeat_in_thread

BACKEND = "backend"
_OURS = "FROM pg_stat_activity WHERE application_name = 'load-lab'"
# Postgres's messages when its connections are used up.
_NO_CONNECTIONS = re.compile("connection slots are reserved|too many clients")


class SharedInjector:
    """See `tests.faults.injector.FaultInjector`. Subclasses provide a service's processes and the
    passwords.
    """

    engine: Engine

    def remove(self) -> None:
        """Stop the stack and remove its data, so that later stacks do not find it."""
        self.engine.down()

    def family(self, service: str) -> list[psutil.Process]:
        """Return the service's first process and all its descendants, with this machine's pids."""
        raise NotImplementedError

    def password(self, name: str) -> str:
        """Return the content of the secret `name`."""
        raise NotImplementedError

    @contextmanager
    def kill_worker(self) -> Iterator[None]:
        self.family(BACKEND)[1].kill()
        yield

    @contextmanager
    def kill_master(self) -> Iterator[None]:
        self.family(BACKEND)[0].kill()
        yield

    @contextmanager
    def exhaust_connections(self) -> Iterator[None]:
        # The superuser connects first: other clients could take the slots reserved for it.
        with (
            ExitStack() as connections,
            self._connect("postgres", "postgres_password") as superuser,
        ):
            superuser.autocommit = True
            assert self._occupy_connections(connections), "Postgres had none left before this began"
            while not self._is_exhausted(connections, superuser):
                pass
            # The exporter connects and disconnects; the backend could take the free connection.
            with repeat_in_thread(lambda: self._is_exhausted(connections, superuser)):
                yield

    @contextmanager
    def use_proxy(self) -> Iterator[None]:
        self.set("LAB_LATENCY_MS=1")
        try:
            yield
        finally:
            self.set("LAB_LATENCY_MS=0")

    @contextmanager
    def delay_database(self, milliseconds: int) -> Iterator[None]:
        self._delay(milliseconds)
        try:
            yield
        finally:
            self._delay(1)

    def set(self, assignment: str) -> None:
        """Apply a setting as `lab set` does."""
        settings = self.engine.settings()
        assert settings is not None
        self.engine.apply(update_settings(settings, [assignment]))

    def _is_exhausted(self, connections: ExitStack, superuser: psycopg.Connection) -> bool:
        """Return whether the backend has no connection and Postgres has none left for it.

        A terminated connection leaves pg_stat_activity before its slot is free. Therefore this
        reads the list before and after the attempt to take a slot.
        """
        statement = f"SELECT pg_terminate_backend(pid) {_OURS}"
        before, count = (
            superuser.execute(statement).fetchall(),
            self._occupy_connections(connections),
        )
        return not (before or count or superuser.execute(statement).fetchall())

    def _delay(self, milliseconds: int) -> None:
        url = f"http://{LOOPBACK}:{self.engine.settings().LAB_TOXIPROXY_PORT}"
        attributes = {"latency": milliseconds, "jitter": 0}
        response = httpx.post(
            f"{url}/proxies/postgres/toxics/delay", json={"attributes": attributes}
        )
        response.raise_for_status()

    def _occupy_connections(self, connections: ExitStack) -> int:
        """Connect as the backend's role until Postgres has no slot left; return the number."""
        count = 0
        while True:
            try:
                connections.callback(self._connect("hotel", "hotel_password").close)
            except psycopg.OperationalError as error:
                if _NO_CONNECTIONS.search(str(error)):
                    return count
                raise
            count += 1

    def _connect(self, user: str, secret: str) -> psycopg.Connection:
        port = self.engine.settings().LAB_POSTGRES_PORT
        dsn = f"host={LOOPBACK} port={port} dbname=hotel"
        return psycopg.connect(dsn, user=user, password=self.password(secret))
