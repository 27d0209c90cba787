"""What the threads of a server do, from /proc: compute, wait for a CPU, or for something else."""

import os
import platform
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import psutil

# What a thread is at. `lock`: a lock of the process itself, such as Python's GIL, a pool, or an
# idle thread's queue. `file`: a lock of a file. `outside`: a response from another program.
# `sending`: until a client takes its response. `loop`: an event loop, or a server that waits for
# its next request. `other`: a call that is not in this list; `unknown`: it is not told.
ThreadState = Literal[
    "running", "lock", "file", "disk", "outside", "sending", "sleep", "loop", "other", "unknown"
]
_Call = Literal["receive", "send", "poll", "select"] | ThreadState

_SYSCALLS: dict[str, dict[_Call, tuple[int, ...]]] = {
    "x86_64": {
        "lock": (65, 202, 220, 449),
        "file": (72, 73),
        "disk": (17, 18, 74, 75, 277),
        "receive": (0, 19, 42, 45, 47, 299),
        "send": (1, 20, 40, 44, 46, 307),
        "poll": (7, 271),
        "select": (23, 270),
        "sleep": (34, 35, 230),
        # Waiting for a child process, too: its threads are looked at, too.
        "loop": (43, 61, 232, 247, 281, 288, 441),
    },
    "aarch64": {
        "lock": (98, 192, 193, 449),
        "file": (25, 32),
        "disk": (67, 68, 82, 83, 84),
        "receive": (63, 65, 203, 207, 212, 243),
        "send": (64, 66, 71, 206, 211, 269),
        "poll": (73,),
        "select": (72,),
        "sleep": (101, 115),
        "loop": (22, 95, 202, 242, 260, 441),
    },
}
_CALLS = {
    number: call
    for call, numbers in _SYSCALLS.get(platform.machine(), {}).items()
    for number in numbers
}
_POLLED = struct.Struct("=ihh")
_POLL_IN, _POLL_OUT = 1, 4
# A server polls its connections; a client its own, or one for each family of addresses.
_MOST_OF_A_CLIENT = 2
_NANOSECONDS = 1e9
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Thread:
    """What a thread of a process is at; `file` it waits for: its path, or as `socket:[INODE]`."""

    pid: int
    state: ThreadState
    file: str = ""

    @property
    def socket(self) -> int:
        """Return the inode of the socket that it waits for; 0 for another file."""
        return int(self.file[8:-1]) if self.file.startswith("socket:[") else 0


@dataclass(frozen=True)
class Use:
    """So far, in seconds: the CPU time of each process, its ended threads included, and the time
    that each thread waited for a CPU; how often each got one; and the major page faults.
    """

    cpu: dict[int, float]
    waited: dict[int, float]
    runs: dict[int, int]
    faults: int


@dataclass
class Processes:
    """The processes below `roots`, looked for again by `refresh`."""

    roots: Iterable[int]
    pids: list[int] = field(default_factory=list)

    def refresh(self) -> None:
        self.pids = list(_tree(self.roots))

    def threads(self) -> list[Thread]:
        """Return what each thread is at; of other users' that is unknown."""
        return [
            _thread(pid, path) for pid in self.pids for path in _glob(Path(f"/proc/{pid}/task"))
        ]

    def use(self) -> Use:
        use = Use({}, {}, {}, 0)
        faults = 0
        for pid in self.pids:
            for path in _glob(Path(f"/proc/{pid}/task")):
                with suppress(OSError, ValueError):
                    _, wait, runs = (path / "schedstat").read_text().split()
                    use.waited[int(path.name)] = int(wait) / _NANOSECONDS
                    use.runs[int(path.name)] = int(runs)
            with suppress(OSError, IndexError, ValueError):
                # The fields after the name, which may contain spaces: state, …, majflt, …, utime.
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                faults += int(fields[9])
                use.cpu[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
        return Use(use.cpu, use.waited, use.runs, faults)


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


def _thread(pid: int, task: Path) -> Thread:
    """Return what a thread is at; the kernel tells it to root, and perhaps to the same user."""
    try:
        number, *arguments = (task / "syscall").read_text().split()
    except (OSError, ValueError):
        return Thread(pid, "unknown")
    if number == "running":
        return Thread(pid, "running")
    call = _CALLS.get(int(number)) if number.lstrip("-").isdigit() else None
    if call is None:
        return Thread(pid, "other")
    first, second, *_ = (int(each, 16) for each in (*arguments, "0", "0"))
    return _seen(pid, call, first, second)


def _seen(pid: int, call: _Call, first: int, second: int) -> Thread:
    """Return a thread in a call with its first arguments."""
    match call:
        case "file":
            return Thread(pid, "file", _file_of(pid, first))
        case "receive":
            return _receiving(pid, first)
        case "send":
            return _sending(pid, first)
        case "poll":
            return _polling(pid, first, second)
        case "select":
            # Without files it is a sleep.
            return Thread(pid, "loop" if first else "sleep")
        case _:
            return Thread(pid, call)


def _file_of(pid: int, number: int) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/fd/{number}")  # noqa: PTH115 - quicker
    return ""


def _receiving(pid: int, number: int) -> Thread:
    return Thread(pid, "disk" if _is_on_disk(pid, number) else "outside", _file_of(pid, number))


def _sending(pid: int, number: int) -> Thread:
    thread = _receiving(pid, number)
    return replace(thread, state="sending") if thread.socket else thread


def _is_on_disk(pid: int, number: int) -> bool:
    """Return whether a file is a regular one: no pipe, socket or terminal."""
    with suppress(OSError):
        return stat.S_ISREG(Path(f"/proc/{pid}/fd/{number}").stat().st_mode)
    return False


def _polling(pid: int, address: int, count: int) -> Thread:
    if not count:
        return Thread(pid, "sleep")
    if count > _MOST_OF_A_CLIENT:
        return Thread(pid, "loop")
    polled = _memory(pid, address, _POLLED.size)
    if len(polled) < _POLLED.size:
        return Thread(pid, "outside")
    number, events, _ = _POLLED.unpack(polled)
    is_sending = events & _POLL_OUT and not events & _POLL_IN
    return (_sending if is_sending else _receiving)(pid, number)


def _memory(pid: int, address: int, size: int) -> bytes:
    with suppress(OSError, OverflowError):
        file = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        try:
            return os.pread(file, size, address)
        finally:
            os.close(file)
    return b""
