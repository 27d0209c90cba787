"""What breaks in the same way on both engines, whose services answer at the same ports."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import httpx
import psutil
import psycopg

from lab.settings import LOOPBACK, changed
from lab.stack.engine import Engine

BACKEND = "backend"
_OURS = "FROM pg_stat_activity WHERE application_name = 'load-lab'"
# What Postgres says to who comes when its connections are used up.
_FULL = re.compile("connection slots are reserved|too many clients")


@contextmanager
def _repeated(action: Callable[[], object]) -> Iterator[None]:
    """Ten times a second, in a thread of its own."""
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
    """See `tests.faults.hand.Hand`. An engine says whose processes are a service's, and has the
    passwords.
    """

    engine: Engine

    def remove(self) -> None:
        """The stack is down, and has kept nothing that another would find."""
        self.engine.down()

    def family(self, service: str) -> list[psutil.Process]:
        """The service's first process and all that descend from it, as this machine sees them."""
        raise NotImplementedError

    def password(self, name: str) -> str:
        """What the secret of that name holds."""
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
        # Before there are none: those that Postgres keeps for its superuser go to whoever tries.
        with ExitStack() as held, self._connect("postgres", "postgres_password") as ours:
            ours.autocommit = True
            assert self._take_connections(held), "Postgres had none left before this began"
            while not self._has_none(held, ours):
                pass
            # What measures Postgres comes and goes, and leaves a place, which the backend may find.
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
        """As `lab set` does."""
        running = self.engine.settings()
        assert running is not None
        self.engine.apply(changed(running, [assignment]))

    def _has_none(self, held: ExitStack, ours: psycopg.Connection) -> bool:
        """Whether the backend has no connection, and Postgres none for it. One that is ended is on
        no list before its place is free: so it is asked for before and after a place was not.
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
        """As the backend's own role, until Postgres has none left for it; how many it had."""
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
