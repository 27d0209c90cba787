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

from load_lab.paths import State
from load_lab.stack.native import NativeEngine
from tests.faults.shared import SharedInjector

_CACHES = ("cache-protected", "cache-refreshes")
# Above Nginx's min_free (64 MB), so that Nginx caches pages until the disk is full.
_DISK_MB = 192


class NativeInjector(SharedInjector):
    """See `tests.faults.injector.FaultInjector`."""

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
    def stop(self, service: str) -> Iterator[None]:
        self._supervision.stop_service(service)
        try:
            yield
        finally:
            self._supervision.start_service(service)

    @contextmanager
    def freeze(self, service: str) -> Iterator[None]:
        family = self.family(service)
        try:
            for process in family:
                process.suspend()
            yield
        finally:
            for process in family:
                process.resume()

    @contextmanager
    def reload_nginx(self) -> Iterator[None]:
        self._supervision.signal_service("nginx", signal.SIGHUP)
        yield

    @contextmanager
    def use_small_disk(self) -> Iterator[None]:
        if os.geteuid() != 0:
            pytest.skip("a disk that can be filled is mounted over Nginx's caches: needs root")
        with ExitStack() as mounts:
            disk = self._state.run / "small-disk"
            _mount(mounts, disk, "-t", "tmpfs", "-o", f"size={_DISK_MB}m", "tmpfs")
            for name in _CACHES:
                (disk / name).mkdir()
                _mount(mounts, self._state.run / name, "--bind", str(disk / name))
            yield

    @contextmanager
    def fill_disk(self) -> Iterator[None]:
        stop = threading.Event()
        file = self._state.run / "small-disk/filling"
        thread = threading.Thread(target=_fill, args=[file, stop])
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            file.unlink()

    @contextmanager
    def deploy(self) -> Iterator[None]:
        age = self.engine.settings().LAB_CONN_MAX_AGE
        self.set(f"LAB_CONN_MAX_AGE={age + 1}")
        yield


def _mount(mounts: ExitStack, target: Path, *flags: str) -> None:
    target.mkdir(exist_ok=True)
    process = subprocess.run(["mount", *flags, str(target)], capture_output=True, text=True)
    if process.returncode:
        pytest.skip(f"no disk can be mounted here: {process.stderr.strip()}")
    # A lazy unmount, because Nginx has open files on it.
    mounts.callback(subprocess.run, ["umount", "--lazy", str(target)], check=True)


def _fill(file: Path, stop: threading.Event) -> None:
    """Fill the disk, and fill it again as soon as space is freed."""
    megabyte = bytes(1024**2)
    with file.open("wb", buffering=0) as stream:
        while not stop.is_set():
            try:
                stream.write(megabyte)
            except OSError:
                time.sleep(0.005)
