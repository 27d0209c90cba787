"""Exporter of the stack's processes: CPU time, memory and disk use of each service.

python -m load_lab.stack.native.process_exporter HOST PORT STATE

A service is the process that supervisor started, with its descendants. That takes one pass over
/proc/*/stat per scrape. Debian's process-exporter matches the command line of every process of the
machine and reads its memory map, at each scrape: docs/measured/telemetry.md.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from load_lab.machine.processes import memory_bytes
from load_lab.paths import State
from load_lab.stack.measuring_services import measured_group
from load_lab.stack.native.supervision import Supervision

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# For a proportional set size the kernel walks the process's page table: 1 to 4 ms for one process
# of Postgres. The next reading starts when the last one has taken this share of the time since.
_MEMORY_SHARE = 0.005
# Name of each metric, and its help.
_COUNTERS = {
    "lab_process_cpu_seconds": "User and system time, including ended children.",
    "lab_process_read_bytes": "Bytes read from storage, without the page cache.",
    "lab_process_written_bytes": "Bytes written to storage.",
}


@dataclass(frozen=True)
class Process:
    """One process: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html."""

    pid: int
    name: str
    parent: int
    # In ticks, with those of the children that ended and were waited for.
    cpu_ticks: int
    # In ticks since the machine's start; with the pid it identifies a process.
    started: int


# The processes of each tree, by its root and the service's name.
Trees = dict[tuple[Process, str], list[Process]]


def processes() -> dict[int, Process]:
    """Return every process of this machine by its pid."""
    found = map(_read_stat, psutil.pids())
    return {process.pid: process for process in found if process}


def _read_stat(pid: int) -> Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name may contain spaces and parentheses.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return Process(
        pid=pid,
        name=head.partition("(")[2],
        parent=int(fields[1]),
        cpu_ticks=sum(map(int, fields[11:15])),
        started=int(fields[19]),
    )


class ProcessCollector(Collector):
    """Totals of each service, by its name in measurements (label `group`)."""

    def __init__(self, supervision: Supervision, supervisor: int) -> None:
        self._supervision, self._supervisor = supervision, supervisor
        self._lock = threading.Lock()
        self._supervised: dict[int, str] = {}
        self._children: set[int] = set()
        # Last values of each tree by its root, and the sums of all increases by service.
        self._last: dict[tuple[int, int], list[float]] = {}
        self._totals: dict[str, list[float]] = {}
        self._memory = _MemoryReader()

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            trees = self._trees(processes())
            self._count(trees)
            memory = self._memory.read(trees)
        for index, (name, text) in enumerate(_COUNTERS.items()):
            counter = CounterMetricFamily(name, text, labels=["group"])
            for service in sorted({name for _, name in trees}):
                counter.add_metric([service], self._totals[service][index])
            yield counter
        gauge = GaugeMetricFamily(
            "lab_process_memory_bytes", "Proportional set size.", labels=["group"]
        )
        for service, size in memory.items():
            gauge.add_metric([service], size)
        yield gauge

    def _trees(self, table: dict[int, Process]) -> Trees:
        """Return the processes of each service's tree, by its root and the service's name."""
        names = self._supervised_names(table) | {
            pid: "load" for pid, process in table.items() if _is_load(process)
        }
        trees: Trees = {(table[pid], name): [] for pid, name in names.items() if pid in table}
        for process in table.values():
            root = _root(process, table, names)
            if root is not None:
                trees[root, names[root.pid]].append(process)
        return trees

    def _supervised_names(self, table: dict[int, Process]) -> dict[int, str]:
        """Query supervisor only after one of its processes started or ended."""
        children = {pid for pid, process in table.items() if process.parent == self._supervisor}
        if children != self._children:
            pids = self._supervision.pids()
            self._supervised = {pid: measured_group(name) for name, pid in pids.items()}
            self._children = children
        return self._supervised

    def _count(self, trees: Trees) -> None:
        """Add what each tree used since the last scrape.

        The sum over a tree can decrease: when a process ends that its parent does not wait for.
        """
        now = {
            (root.pid, root.started): (name, _usage(members))
            for (root, name), members in trees.items()
        }
        for key, (name, usage) in now.items():
            last = self._last.get(key, [0.0] * len(usage))
            total = self._totals.setdefault(name, [0.0] * len(usage))
            for index, value in enumerate(usage):
                total[index] += max(value - last[index], 0)
        self._last = {key: usage for key, (_, usage) in now.items()}


class _MemoryReader:
    """Memory by service, read again when that costs little, or a service has started."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._roots: set[int] = set()
        self._due = 0.0

    def read(self, trees: Trees) -> dict[str, int]:
        roots = {root.pid for root, _ in trees}
        started = time.monotonic()
        if started >= self._due or roots != self._roots:
            self._sizes = _sizes(trees)
            self._roots = roots
            now = time.monotonic()
            self._due = now + (now - started) / _MEMORY_SHARE
        return self._sizes


def _sizes(trees: Trees) -> dict[str, int]:
    """Return the bytes of each service whose processes are all readable."""
    members: dict[str, list[int]] = {}
    for (_, name), tree in trees.items():
        members.setdefault(name, []).extend(process.pid for process in tree)
    sizes = {name: memory_bytes(pids) for name, pids in members.items()}
    return {name: size for name, size in sizes.items() if size is not None}


def _usage(members: list[Process]) -> list[float]:
    """Return CPU seconds, and bytes read and written, in the order of `_COUNTERS`."""
    disk = [_disk_bytes(process.pid) for process in members]
    return [
        sum(process.cpu_ticks for process in members) / _TICKS_PER_SECOND,
        sum(read for read, _ in disk),
        sum(written for _, written in disk),
    ]


def _disk_bytes(pid: int) -> tuple[int, int]:
    """Return bytes read and written; zeros for a process that ended or belongs to another user."""
    try:
        text = Path(f"/proc/{pid}/io").read_text()
    except OSError:
        return 0, 0
    values = dict(line.split(": ") for line in text.splitlines())
    return int(values["read_bytes"]), int(values["write_bytes"])


def _is_load(process: Process) -> bool:
    """Return whether it is a k6 that sends load: started by the lab or by hand."""
    if process.name != "k6":
        return False
    try:
        return b"run" in Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def _root(process: Process, table: dict[int, Process], names: dict[int, str]) -> Process | None:
    """Return the root of the tree that contains the process."""
    while process.pid not in names:
        parent = table.get(process.parent)
        if parent is None or parent is process:
            return None
        process = parent
    return process


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    host, port, base = sys.argv[1:]
    registry = CollectorRegistry()
    # Supervisor is the parent of its services.
    registry.register(ProcessCollector(Supervision(State(Path(base))), os.getppid()))
    server, thread = start_http_server(int(port), host, registry)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    server.shutdown()
    thread.join()


if __name__ == "__main__":
    main()
