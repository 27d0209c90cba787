"""What the threads of a server do, from /proc: compute, wait for a CPU, or for something else."""

import os
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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
_CGROUPS = Path("/sys/fs/cgroup")


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


def throttled_seconds(services: Mapping[str, int]) -> dict[str, float]:
    """Return for how long each service was throttled so far, by the CPU quota of its control group.
    `services`: their main processes. A group counts once, for the first of its services.
    """
    groups = dict[Path, str]()
    for service, pid in services.items():
        if group := _group(pid):
            groups.setdefault(group, service)
    return {service: _throttled(group) for group, service in groups.items()}


def _group(pid: int) -> Path | None:
    """Return the file with the CPU time of a process's control group."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for folder in _folders(controllers, path):
                if (folder / "cpu.stat").exists():
                    return folder / "cpu.stat"
    return None


def _folders(controllers: str, path: str) -> list[Path]:
    """Return where a control group's files are: of version 2, or of version 1's `cpu`."""
    if controllers == "":
        return [Path(f"{_CGROUPS}{path}"), Path(f"{_CGROUPS}/unified{path}")]
    if "cpu" in controllers.split(","):
        return [Path(f"{_CGROUPS}/{controllers}{path}"), Path(f"{_CGROUPS}/cpu{path}")]
    return []


def _throttled(group: Path) -> float:
    with suppress(OSError):
        values = dict(line.split() for line in group.read_text().splitlines())
        if "throttled_usec" in values:
            return int(values["throttled_usec"]) / 1e6
        return int(values.get("throttled_time", 0)) / _NANOSECONDS
    return 0.0
