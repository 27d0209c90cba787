"""Faults on the native engine, where services are processes of this machine."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from lab.paths import State
from lab.stack.native import NativeEngine
from tests.faults.shared import SharedHand

_CACHES = ("cache-protected", "cache-refreshes")
# Above Nginx's min_free (64 MB), so that Nginx caches pages until the disk is full.
_DISK_MB = 192


class NativeHand(SharedHand):
    """See `tests.faults.hand.Hand`."""

    engine: NativeEngine

    def __init__(self, engine: NativeEngine, state: State) -> None:
        self.engine = engine
        self._state = state
        self._supervision = engine._supervision

    def family(self, service: str) -> list[psutil.Process]:
        process = psutil.Process(self._supervision.pid(service))
        return [process, *process.children(recursive=True)]

    def password(self, name: str) -> str:
        return (self._state.secrets / name).read_text().strip()

    @contextmanager
    def stopped(self, service: str) -> Iterator[None]:
        self._supervision.stop_service(service)
        try:
            yield
        finally:
            self._supervision.start_service(service)

    @contextmanager
    def frozen(self, service: str) -> Iterator[None]:
        family = self.family(service)
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
    def own_disk(self) -> Iterator[None]:
        if os.geteuid() != 0:
            pytest.skip("a disk that can be filled is mounted over Nginx's caches: needs root")
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
    def deployed(self) -> Iterator[None]:
        age = self.engine.settings().LAB_CONN_MAX_AGE
        self.set(f"LAB_CONN_MAX_AGE={age + 1}")
        yield


def _mount(mounted: ExitStack, target: Path, *flags: str) -> None:
    target.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *flags, str(target)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    # A lazy unmount, because Nginx has open files on it.
    mounted.callback(subprocess.run, ["umount", "--lazy", str(target)], check=True)


def _fill(file: Path, done: threading.Event) -> None:
    """Fill the disk, and fill it again as soon as space is freed."""
    megabyte = bytes(1024**2)
    with file.open("wb", buffering=0) as full:
        while not done.is_set():
            try:
                full.write(megabyte)
            except OSError:
                time.sleep(0.005)
