"""CPU time and memory of process trees."""

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from tenacity import Retrying, retry_if_result, stop_after_delay

# CPU cores that idle programs use, and how long to sample them.
_IDLE_CORES, _SAMPLE_SECONDS = 0.2, 0.2


def cpu_seconds(roots: Mapping[str, int]) -> dict[str, float]:
    """Return the CPU seconds of each process tree so far; `roots` maps names to root processes."""
    return CpuTimes.now().of(roots)


@dataclass(frozen=True)
class CpuTimes:
    """The CPU seconds of every process at a moment, also of those whose part is known only later.
    An ended process that was waited for counts in its parent.
    """

    parents: Mapping[int, int]
    used: Mapping[int, float]

    @classmethod
    def now(cls) -> "CpuTimes":
        parents, used = {}, {}
        for process in psutil.process_iter(["ppid", "cpu_times"]):
            parents[process.pid] = process.info["ppid"]
            times = process.info["cpu_times"]
            used[process.pid] = sum(times[:4]) if times else 0.0
        return cls(parents, used)

    def of(self, roots: Mapping[str, int]) -> dict[str, float]:
        """Return the CPU seconds of each process tree; `roots` maps names to root processes."""
        names = {pid: name for name, pid in roots.items()}
        total = dict.fromkeys(roots, 0.0)
        for pid, seconds in self.used.items():
            name = _root(pid, self.parents, names)
            if name is not None:
                total[name] += seconds
        return total


def generator_pids(testid: str) -> dict[str, int]:
    """Return the k6 processes of a load, by their number; those in containers too, as far as this
    user may read their environment.
    """
    pids = {}
    for process in psutil.process_iter(["name"]):
        if process.info["name"] != "k6":
            continue
        with suppress(psutil.Error):
            environ = process.environ()
            if environ.get("TESTID") == testid:
                pids[environ.get("SEGMENT", "").partition("/")[0] or "1"] = process.pid
    return pids


def listener(port: int) -> str:
    """Describe the program that listens on a port; only root sees those of other users."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            address = connection.laddr
            listens = connection.status == psutil.CONN_LISTEN and address and address.port == port
            if listens and connection.pid is not None:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    return "another program"


def cores_used(roots: Mapping[str, int], seconds: float = _SAMPLE_SECONDS) -> float:
    """Return the CPU seconds per second that the trees use in the next `seconds`."""
    started, before = time.monotonic(), sum(cpu_seconds(roots).values())
    time.sleep(seconds)
    used = sum(cpu_seconds(roots).values()) - before
    return used / (time.monotonic() - started)


def wait_until_idle(roots: Mapping[str, int], seconds: float = 30) -> None:
    """Wait, at most `seconds`, until the trees have finished the work of an ended load.

    A generator that stops leaves a request on each of its connections. A sync worker answers them
    all, although no client reads the responses. With naive details, that would take a third of the
    next load's time.
    """
    retry = Retrying(
        retry=retry_if_result(lambda cores: cores > _IDLE_CORES),
        stop=stop_after_delay(seconds),
        retry_error_callback=lambda _state: None,
    )
    retry(cores_used, roots)


def _root(pid: int, parents: Mapping[int, int], names: dict[int, str]) -> str | None:
    """Return the name of the tree that contains `pid`."""
    while pid not in names:
        if pid not in parents or pid == parents[pid]:
            return None
        pid = parents[pid]
    return names[pid]


# Services with a backend's or an old stack's name that do not answer requests.
_NO_SERVERS = {"backend-metrics", "backend-worker", "legacy-redis"}
_PSS = "Pss:"


def server_pids(pids: Mapping[str, int]) -> list[int]:
    """Return the main processes that answer requests."""
    return [pids[name] for name in server_names(pids)]


def server_names(services: Iterable[str]) -> list[str]:
    """Return the services that answer requests: a declared target's or an old stack's if there is
    one, else the backend's.
    """
    names = list(services)
    by_kind = (
        [name for name in names if _is_server(name, prefix)]
        for prefix in ("target", "legacy-", "backend")
    )
    return next(filter(None, by_kind), [])


def tree_bytes(roots: Iterable[int]) -> int | None:
    """Return the memory of the processes and all their descendants, in bytes.

    A page that several processes share counts once, divided among them (PSS). None where the size
    is not readable: processes of other users, or not Linux.
    """
    return memory_bytes(pid for root in roots for pid in process_tree(root))


def memory_bytes(pids: Iterable[int]) -> int | None:
    """Return the memory of these processes, as `tree_bytes` does."""
    sizes = [_pss(pid) for pid in pids]
    readable = [size for size in sizes if size is not None]
    return sum(readable) if readable and len(readable) == len(sizes) else None


def _is_server(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and name not in _NO_SERVERS


def process_tree(root: int) -> list[int]:
    """Return the process and all its descendants; nothing if it has ended."""
    try:
        process = psutil.Process(root)
        return [root, *(child.pid for child in process.children(recursive=True))]
    except psutil.Error:
        return []


def _pss(pid: int) -> int | None:
    """Return the PSS in bytes; 0 for a process that has just ended, None where it is not
    readable.
    """
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None if not Path("/proc/self/smaps_rollup").exists() else 0
    except PermissionError:
        return None
    line = next(line for line in text.splitlines() if line.startswith(_PSS))
    return 1024 * int(line.split()[1])
