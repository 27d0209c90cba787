"""How things break on the native engine, where all are processes of this machine."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from lab.engine.native import NativeEngine
from lab.paths import State
from lab.settings import LOOPBACK, changed

_BACKEND = "backend"
_CACHES = ("cache-protected", "cache-refreshes")
# Above Nginx' min_free (64 MB), so that it keeps pages while the disk is not full.
_DISK_MB = 192
_OURS = "FROM pg_stat_activity WHERE application_name = 'load-lab'"


class NativeHand:
    """See `tests.faults.hand.Hand`."""

    def __init__(self, engine: NativeEngine, state: State) -> None:
        self.engine = engine
        self._state = state
        self._supervision = engine._supervision

    @contextmanager
    def worker_killed(self) -> Iterator[None]:
        self._family(_BACKEND)[1].kill()
        yield

    @contextmanager
    def master_killed(self) -> Iterator[None]:
        self._family(_BACKEND)[0].kill()
        yield

    @contextmanager
    def stopped(self, service: str) -> Iterator[None]:
        self._supervision.stop_service(service)
        try:
            yield
        finally:
            self._supervision.start_service(service)

    @contextmanager
    def frozen(self, service: str) -> Iterator[None]:
        family = self._family(service)
        try:
            for process in family:
                process.suspend()
            yield
        finally:
            for process in family:
                process.resume()

    @contextmanager
    def nginx_reloaded(self) -> Iterator[None]:
        self._supervision.signal_service("nginx", signal.SIGHUP)
        yield

    @contextmanager
    def connections_used_up(self) -> Iterator[None]:
        # Before there are none: those that Postgres keeps for its superuser go to whoever tries.
        with ExitStack() as held, self._connect("postgres") as ours:
            ours.autocommit = True
            self._take_connections(held)
            while ours.execute(f"SELECT pg_terminate_backend(pid) {_OURS}").fetchall():
                self._take_connections(held)
            yield

    @contextmanager
    def own_disk(self) -> Iterator[None]:
        if os.geteuid() != 0:
            pytest.skip("a disk that can be filled is mounted over Nginx' caches: needs root")
        with ExitStack() as mounted:
            disk = self._state.run / "small-disk"
            _mount(mounted, disk, "-t", "tmpfs", "-o", f"size={_DISK_MB}m", "tmpfs")
            for name in _CACHES:
                (disk / name).mkdir()
                _mount(mounted, self._state.run / name, "--bind", str(disk / name))
            yield

    @contextmanager
    def disk_full(self) -> Iterator[None]:
        done = threading.Event()
        file = self._state.run / "small-disk/filling"
        filling = threading.Thread(target=_fill, args=[file, done])
        filling.start()
        try:
            yield
        finally:
            done.set()
            filling.join()
            file.unlink()

    @contextmanager
    def behind_proxy(self) -> Iterator[None]:
        self._set("LAB_LATENCY_MS=1")
        try:
            yield
        finally:
            self._set("LAB_LATENCY_MS=0")

    @contextmanager
    def slow_database(self, milliseconds: int) -> Iterator[None]:
        self._delay(milliseconds)
        try:
            yield
        finally:
            self._delay(1)

    @contextmanager
    def deployed(self) -> Iterator[None]:
        age = self.engine.settings().LAB_CONN_MAX_AGE
        self._set(f"LAB_CONN_MAX_AGE={age + 1}")
        yield

    def _family(self, service: str) -> list[psutil.Process]:
        process = psutil.Process(self._supervision.pid(service))
        return [process, *process.children(recursive=True)]

    def _set(self, assignment: str) -> None:
        self.engine.apply(changed(self.engine.settings(), [assignment]))

    def _delay(self, milliseconds: int) -> None:
        url = f"http://{LOOPBACK}:{self.engine.settings().LAB_TOXIPROXY_PORT}"
        attributes = {"latency": milliseconds, "jitter": 0}
        answer = httpx.post(f"{url}/proxies/postgres/toxics/delay", json={"attributes": attributes})
        answer.raise_for_status()

    def _take_connections(self, held: ExitStack) -> None:
        """As the backend's own role, until Postgres has none left for it."""
        with suppress(psycopg.OperationalError):
            while True:
                held.callback(self._connect("hotel").close)

    def _connect(self, user: str) -> psycopg.Connection:
        password = (self._state.secrets / "postgres_password").read_text().strip()
        where = f"host={LOOPBACK} port={self.engine.settings().LAB_POSTGRES_PORT} dbname=hotel"
        return psycopg.connect(where, user=user, password=password)


def _mount(mounted: ExitStack, target: Path, *flags: str) -> None:
    target.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *flags, str(target)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    # Nginx has files on it open: it goes with them.
    mounted.callback(subprocess.run, ["umount", "--lazy", str(target)], check=True)


def _fill(file: Path, done: threading.Event) -> None:
    """Until there is no room, and again whenever there is."""
    megabyte = bytes(1024**2)
    with file.open("wb", buffering=0) as full:
        while not done.is_set():
            try:
                full.write(megabyte)
            except OSError:
                time.sleep(0.005)
