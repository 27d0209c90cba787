"""What the threads of a server do, from /proc: compute, wait for a CPU, or for something else."""

import os
import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import psutil

# What a thread is at. `lock`: a lock of the process itself, such as Python's GIL, a pool, or an
# idle thread's queue. `outside`: a response from another program. `loop`: an event loop, or a
# server that waits for its next request.
ThreadState = Literal["running", "lock", "outside", "sleep", "loop", "unknown"]

_SYSCALLS: dict[str, dict[ThreadState, tuple[int, ...]]] = {
    "x86_64": {
        "lock": (202, 449),
        "outside": (0, 7, 44, 45, 46, 47, 271),
        "sleep": (35, 230),
        "loop": (23, 43, 232, 270, 281, 288, 441),
    },
    "aarch64": {
        "lock": (98, 449),
        "outside": (63, 73, 206, 207, 211, 212),
        "sleep": (101, 115),
        "loop": (22, 72, 202, 242, 441),
    },
}
_STATES = {
    number: state
    for state, numbers in _SYSCALLS.get(platform.machine(), {}).items()
    for number in numbers
}
_NANOSECONDS = 1e9
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Use:
    """So far, in seconds: the CPU time of each process, its ended threads included, and the time
    that each thread waited for a CPU; and the major page faults.
    """

    cpu: dict[int, float]
    waited: dict[int, float]
    faults: int


@dataclass
class Processes:
    """The processes below `roots`, looked for again by `refresh`."""

    roots: Iterable[int]
    pids: list[int] = field(default_factory=list)

    def refresh(self) -> None:
        self.pids = list(_tree(self.roots))

    def states(self) -> Counter[ThreadState]:
        """Return the number of threads in each state; other users' are unknown."""
        return Counter(
            _state(path) for pid in self.pids for path in _glob(Path(f"/proc/{pid}/task"))
        )

    def use(self) -> Use:
        cpu, waited, faults = dict[int, float](), dict[int, float](), 0
        for pid in self.pids:
            for path in _glob(Path(f"/proc/{pid}/task")):
                with suppress(OSError, ValueError):
                    _, wait, _ = (path / "schedstat").read_text().split()
                    waited[int(path.name)] = int(wait) / _NANOSECONDS
            with suppress(OSError, IndexError, ValueError):
                # The fields after the name, which may contain spaces: state, …, majflt, …, utime.
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                faults += int(fields[9])
                cpu[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
        return Use(cpu, waited, faults)


def _tree(roots: Iterable[int]) -> Iterator[int]:
    for root in roots:
        with suppress(psutil.Error):
            process = psutil.Process(root)
            yield root
            for child in process.children(recursive=True):
                yield child.pid


def _glob(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def _state(task: Path) -> ThreadState:
    """Return what a thread is at; the kernel tells it to root, and perhaps to the same user."""
    try:
        first = (task / "syscall").read_text().split(maxsplit=1)[0]
    except (OSError, IndexError):
        return "unknown"
    if first == "running":
        return "running"
    return _STATES.get(int(first), "unknown") if first.lstrip("-").isdigit() else "unknown"
