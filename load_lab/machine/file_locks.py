"""Which files processes have locked for writing, from /proc/locks.

A database like SQLite's tries again after a sleep, so that no thread is seen at the lock.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

_LOCKS = Path("/proc/locks")


class FileLocks:
    """Looks at locks; a file's path is found when it is first seen locked."""

    def __init__(self) -> None:
        self._paths = dict[int, str]()

    def held(self, pids: Collection[int]) -> set[str]:
        """Return the paths of the files on which one of the processes holds a lock for writing."""
        with suppress(OSError):
            return {self._path(pid, inode) for pid, inode in _written(pids)} - {""}
        return set()

    def _path(self, pid: int, inode: int) -> str:
        path = self._paths.get(inode) or _path_of(pid, inode)
        if path:
            self._paths[inode] = path
        return path


def _written(pids: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield the process and the inode of each lock for writing that is held."""
    for line in _LOCKS.read_text().splitlines():
        # Number, "->" if it is waited for, kind, ADVISORY, READ or WRITE, process, device:inode.
        _, *fields = line.split()
        if fields[0] != "->" and fields[2] == "WRITE" and int(fields[3]) in pids:
            yield int(fields[3]), int(fields[4].rpartition(":")[2])


def _path_of(pid: int, inode: int) -> str:
    with suppress(OSError):
        for file in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if file.stat().st_ino == inode:
                    return str(Path(file.path).readlink())
    return ""
