"""Faults that work the same on both engines, whose services listen on the same ports."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import httpx
import psutil
import psycopg

from lab.settings import LOOPBACK, update_settings
from lab.stack.engine import Engine

BACKEND = "backend"
_OURS = "FROM pg_stat_activity WHERE application_name = 'load-lab'"
# Postgres's messages when its connections are used up.
_FULL = re.compile("connection slots are reserved|too many clients")


@contextmanager
def _repeated(action: Callable[[], object]) -> Iterator[None]:
    """Repeat `action` ten times a second in a separate thread."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(0.1):
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class SharedHand:
    """See `tests.faults.hand.Hand`. Subclasses provide a service's processes and the passwords."""

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
    def worker_killed(self) -> Iterator[None]:
        self.family(BACKEND)[1].kill()
        yield

    @contextmanager
    def master_killed(self) -> Iterator[None]:
        self.family(BACKEND)[0].kill()
        yield

    @contextmanager
    def connections_used_up(self) -> Iterator[None]:
        # The superuser connects first: other clients could take the slots reserved for it.
        with ExitStack() as held, self._connect("postgres", "postgres_password") as ours:
            ours.autocommit = True
            assert self._take_connections(held), "Postgres had none left before this began"
            while not self._has_none(held, ours):
                pass
            # The exporter connects and disconnects; the backend could take the free connection.
            with _repeated(lambda: self._has_none(held, ours)):
                yield

    @contextmanager
    def behind_proxy(self) -> Iterator[None]:
        self.set("LAB_LATENCY_MS=1")
        try:
            yield
        finally:
            self.set("LAB_LATENCY_MS=0")

    @contextmanager
    def slow_database(self, milliseconds: int) -> Iterator[None]:
        self._delay(milliseconds)
        try:
            yield
        finally:
            self._delay(1)

    def set(self, assignment: str) -> None:
        """Apply a setting as `lab set` does."""
        running = self.engine.settings()
        assert running is not None
        self.engine.apply(update_settings(running, [assignment]))

    def _has_none(self, held: ExitStack, ours: psycopg.Connection) -> bool:
        """Return whether the backend has no connection and Postgres has none left for it.

        A terminated connection leaves pg_stat_activity before its slot is free. Therefore this
        reads the list before and after the attempt to take a slot.
        """
        asked = f"SELECT pg_terminate_backend(pid) {_OURS}"
        before, taken = ours.execute(asked).fetchall(), self._take_connections(held)
        return not (before or taken or ours.execute(asked).fetchall())

    def _delay(self, milliseconds: int) -> None:
        url = f"http://{LOOPBACK}:{self.engine.settings().LAB_TOXIPROXY_PORT}"
        attributes = {"latency": milliseconds, "jitter": 0}
        answer = httpx.post(f"{url}/proxies/postgres/toxics/delay", json={"attributes": attributes})
        answer.raise_for_status()

    def _take_connections(self, held: ExitStack) -> int:
        """Connect as the backend's role until Postgres has no slot left; return the number."""
        taken = 0
        while True:
            try:
                held.callback(self._connect("hotel", "hotel_password").close)
            except psycopg.OperationalError as error:
                if _FULL.search(str(error)):
                    return taken
                raise
            taken += 1

    def _connect(self, user: str, secret: str) -> psycopg.Connection:
        port = self.engine.settings().LAB_POSTGRES_PORT
        where = f"host={LOOPBACK} port={port} dbname=hotel"
        return psycopg.connect(where, user=user, password=self.password(secret))
