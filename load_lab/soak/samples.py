"""Periodic samples of everything that a long load may cause to grow."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from load_lab.errors import LabError
from load_lab.machine.processes import tree_bytes
from load_lab.paths import State
from load_lab.stack.engine import Engine
from load_lab.stack.reference import DATABASE
from load_lab.targets.reference.bookings import count_bookings

_CONNECTIONS = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{DATABASE}'"  # noqa: S608


@dataclass(frozen=True)
class Sample:
    """One sample, `at` seconds into the load.

    `workers` has the bytes (proportional set size) of each process below the server's, by process
    id, `connections` the number of Postgres's connections to the API's database, `files` the number
    of the server's open files, `folders` the bytes below each folder.
    """

    at: float
    workers: dict[int, int]
    connections: int
    files: int
    folders: dict[str, int]


class Sampler:
    """Takes a sample every `step_seconds` within the `with` block, in a separate thread.

    `missed` counts failed samples: Postgres did not respond, or the server had just ended.
    """

    def __init__(self, engine: Engine, state: State, step_seconds: float) -> None:
        self._engine, self._state, self._step = engine, state, step_seconds
        self._server = engine.pids()["backend"]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._start = time.monotonic()
        self.samples: list[Sample] = []
        self.missed = 0
        self.bookings = 0

    def __enter__(self) -> "Sampler":
        self.bookings = -count_bookings(self._engine)
        self._start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        # After an error in the block, only that error counts: Postgres may be down by now.
        if kind is None:
            self.bookings += count_bookings(self._engine)

    def _run(self) -> None:
        while not self._stop.wait(self._step):
            try:
                self.samples.append(self._sample())
            except (LabError, psutil.Error):
                self.missed += 1

    def _sample(self) -> Sample:
        return Sample(
            at=round(time.monotonic() - self._start, 1),
            workers=worker_bytes(self._server),
            connections=int(self._engine.sql("postgres", _CONNECTIONS)[0]),
            files=open_files(self._server),
            folders={
                name: sum(map(folder_bytes, paths)) for name, paths in folders(self._state).items()
            },
        )


def folders(state: State) -> dict[str, list[Path]]:
    """Return the folders to which the native engine's services write."""
    return {
        "cache": sorted(state.run.glob("cache-*")),
        "log ahead": [state.postgres / "pg_wal"],
        "tables": [state.postgres / "base"],
        "logs": [state.logs],
        "metrics": [state.data / "prometheus"],
    }


def worker_bytes(server: int) -> dict[int, int]:
    """Return the memory of each child of the server's main process; of that process if none."""
    children = [child.pid for child in psutil.Process(server).children(recursive=True)]
    sizes = {pid: tree_bytes([pid]) for pid in children or [server]}
    return {pid: size for pid, size in sizes.items() if size}


def open_files(server: int) -> int:
    """Return the number of open files and sockets of the server's processes."""
    process = psutil.Process(server)
    return sum(
        _count_or_zero(member.num_fds) for member in (process, *process.children(recursive=True))
    )


def _count_or_zero(count: Callable[[], int]) -> int:
    try:
        return count()
    except psutil.Error:
        return 0


def folder_bytes(folder: Path) -> int:
    """Return the size on disk of the files below; a file deleted during the walk counts as 0."""
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(Path(directory, name)).st_blocks * 512
            except OSError:
                continue
    return total
