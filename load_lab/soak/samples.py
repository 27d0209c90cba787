"""Periodic samples of everything that a long load may cause to grow."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from load_lab.errors import LabError
from load_lab.machine.processes import memory_bytes, server_pids
from load_lab.targets.subject import Growth, Running


@dataclass(frozen=True)
class Sample:
    """One sample, `at` seconds into the load.

    `workers` has the bytes (proportional set size) of each of the server's processes, by process
    id, `connections` the number of those to its database, None if that is not known, `files` and
    `threads` the numbers of the processes' open files and threads, `folders` the bytes below each
    folder.
    """

    at: float
    workers: dict[int, int]
    connections: int | None
    files: int
    threads: int
    folders: dict[str, int]


class Sampler:
    """Takes a sample every `step_seconds` within the `with` block, in a separate thread.

    `missed` counts failed samples: Postgres did not respond, or the server had just ended. `rows`
    is, at the end, how many were stored.
    """

    def __init__(self, running: Running, growth: Growth, step_seconds: float) -> None:
        self._running, self._growth, self._step = running, growth, step_seconds
        self._servers = server_pids(running.find_pids())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._start = time.monotonic()
        self.samples: list[Sample] = []
        self.missed = 0
        self.rows = 0

    def __enter__(self) -> "Sampler":
        self.rows = -self._growth.count_rows()
        self._start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        # After an error in the block, only that error counts: Postgres may be down by now.
        if kind is None:
            self.rows += self._growth.count_rows()

    def _run(self) -> None:
        while not self._stop.wait(self._step):
            try:
                self.samples.append(self._sample())
            except (LabError, psutil.Error):
                self.missed += 1

    def _sample(self) -> Sample:
        processes = processes_of(self._servers)
        return Sample(
            at=round(time.monotonic() - self._start, 1),
            workers=process_bytes(processes),
            connections=self._running.count_connections(self._servers[0]),
            files=sum(_count_or_zero(each.num_fds) for each in processes),
            threads=sum(_count_or_zero(each.num_threads) for each in processes),
            folders={
                name: sum(map(folder_bytes, folder.paths()))
                for name, folder in self._growth.folders.items()
            },
        )


def processes_of(servers: list[int]) -> list[psutil.Process]:
    """Return the main processes of the server, and their children.

    Raises:
        psutil.Error: one has ended.
    """
    roots = [psutil.Process(pid) for pid in servers]
    return [each for root in roots for each in (root, *root.children(recursive=True))]


def process_bytes(processes: list[psutil.Process]) -> dict[int, int]:
    """Return the memory of each process; those that have just ended are missing."""
    sizes = {each.pid: memory_bytes([each.pid]) for each in processes}
    return {pid: size for pid, size in sizes.items() if size}


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
