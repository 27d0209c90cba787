"""CPU time and memory of process trees."""

import time
from collections.abc import Iterable
from pathlib import Path

import psutil
from tenacity import Retrying, retry_if_result, stop_after_delay

# What programs use that have nothing to answer, and for how long one looks.
_IDLE_CORES, _LOOK_SECONDS = 0.2, 0.2


def cpu_seconds(roots: dict[str, int]) -> dict[str, float]:
    """CPU seconds so far of each tree; `roots` has the process at its top, by name.

    What ended and was waited for counts on, in its parent.
    """
    parents, used = {}, {}
    for process in psutil.process_iter(["ppid", "cpu_times"]):
        parents[process.pid] = process.info["ppid"]
        times = process.info["cpu_times"]
        used[process.pid] = sum(times[:4]) if times else 0.0
    names = {pid: name for name, pid in roots.items()}
    total = dict.fromkeys(roots, 0.0)
    for pid, seconds in used.items():
        name = _root(pid, parents, names)
        if name is not None:
            total[name] += seconds
    return total


def cores_used(roots: dict[str, int], seconds: float = _LOOK_SECONDS) -> float:
    """CPU seconds per second that the trees use in the next `seconds`."""
    began, before = time.monotonic(), sum(cpu_seconds(roots).values())
    time.sleep(seconds)
    used = sum(cpu_seconds(roots).values()) - before
    return used / (time.monotonic() - began)


def wait_until_idle(roots: dict[str, int], seconds: float = 30) -> None:
    """Wait until the trees have done what an ended load left them, or for so many seconds.

    A generator that stops leaves a request on each of its connections; a sync worker answers them
    all, though nobody reads. Of naive details that would be a third of the next load's time.
    """
    look = Retrying(
        retry=retry_if_result(lambda cores: cores > _IDLE_CORES),
        stop=stop_after_delay(seconds),
        retry_error_callback=lambda _state: None,
    )
    look(cores_used, roots)


def _root(pid: int, parents: dict[int, int], names: dict[int, str]) -> str | None:
    """The name of the tree that `pid` is in."""
    while pid not in names:
        if pid not in parents or pid == parents[pid]:
            return None
        pid = parents[pid]
    return names[pid]


# What runs in a service's name and answers nobody.
_ANSWERS_NOT = {"backend-metrics", "backend-worker", "legacy-redis"}
_PSS = "Pss:"


def answering(pids: dict[str, int]) -> list[int]:
    """The main processes of what answers: an old stack's where one runs, else the backend's."""
    old = [pid for name, pid in pids.items() if _is_of(name, "legacy-")]
    return old or [pid for name, pid in pids.items() if _is_of(name, "backend")]


def tree_bytes(roots: Iterable[int]) -> int | None:
    """Memory of the processes and all that descend from them.

    A page that several processes share counts once, spread over them. None where the system does
    not tell: processes of others, or no Linux.
    """
    found = [_pss(pid) for root in roots for pid in _tree(root)]
    known = [size for size in found if size is not None]
    return sum(known) if known and len(known) == len(found) else None


def _is_of(name: str, what: str) -> bool:
    return name.startswith(what) and name not in _ANSWERS_NOT


def _tree(root: int) -> list[int]:
    try:
        process = psutil.Process(root)
        return [root, *(child.pid for child in process.children(recursive=True))]
    except psutil.Error:
        return []


def _pss(pid: int) -> int | None:
    """Bytes; 0 for a process that has just ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None if not Path("/proc/self/smaps_rollup").exists() else 0
    except PermissionError:
        return None
    line = next(line for line in text.splitlines() if line.startswith(_PSS))
    return 1024 * int(line.split()[1])
