"""Collectors that the metrics server runs at each scrape, without a free worker."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from config import env
from lab_settings.declaration import Declaration
from lab_settings.types import cpu_numbers
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

_PROC = Path("/proc/net")
# https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html
_LISTEN = "0A"


def register(registry: CollectorRegistry) -> None:
    """Register every collector of this module."""
    collectors = (Workers(), AcceptQueue(_backend_port()), ActiveSettings(), PinnedCpus())
    for collector in collectors:
        registry.register(collector)


class Workers(Collector):
    """Metrics of every process of the server and of the second server, merged."""

    def collect(self) -> Iterable[Metric]:
        """Merge the files of all servers; each has a separate folder (config/server/start.py)."""
        files = Path(env.text("BACKEND_METRICS_DIR")).glob("*/*.db")
        merged: Iterable[Metric] = MultiProcessCollector.merge(map(str, files))  # type: ignore[no-untyped-call]
        return merged


class AcceptQueue(Collector):
    """Connections that the kernel has established and no worker has accepted yet.

    It reads the sockets of this network namespace: the backend's, which compose shares with this
    process.
    """

    def __init__(self, port: int, proc: Path = _PROC) -> None:
        self._port = port
        self._tables = [proc / "tcp", proc / "tcp6"]

    def collect(self) -> Iterator[Metric]:
        """Yield one sample, or none if nothing listens, since 0 would mean an empty queue."""
        gauge = GaugeMetricFamily(
            "lab_accept_queue_connections",
            "Connections to the backend that no worker has accepted yet.",
        )
        lengths = [
            n for table in self._tables if table.exists() for n in self._queue_lengths(table)
        ]
        if lengths:
            gauge.add_metric([], sum(lengths))
        yield gauge

    def _queue_lengths(self, table: Path) -> Iterable[int]:
        for line in table.read_text().splitlines()[1:]:
            _, local, _, state, queues, *_ = line.split()
            if state == _LISTEN and int(local.rpartition(":")[2], 16) == self._port:
                yield int(queues.partition(":")[2], 16)


class ActiveSettings(Collector):
    """The settings as labels, read at each scrape, since `lab set` writes a file."""

    def collect(self) -> Iterator[Metric]:
        info = InfoMetricFamily("lab_settings", "The backend's active settings.")
        if settings := _active_settings():
            values = settings.of_backend()
            info.add_metric([], {name.lower(): value for name, value in values.items()})
        yield info


class PinnedCpus(Collector):
    """Number of CPUs of each side; a side that is not pinned has all of them."""

    def collect(self) -> Iterator[Metric]:
        gauge = GaugeMetricFamily(
            "lab_cpus", "CPUs that the target and the load generator may use.", labels=["side"]
        )
        if settings := _active_settings():
            sides = {"target": settings.LAB_TARGET_CPUS, "load": settings.LAB_LOAD_CPUS}
            for side, cpus in sides.items():
                gauge.add_metric([side], len(cpu_numbers(cpus)) or os.cpu_count() or 1)
        yield gauge


def _active_settings() -> Declaration | None:
    """Return the settings; None if they can't be read: `lab down` deletes the file."""
    with suppress(env.EnvError, OSError):
        return env.lab_settings()
    return None


def _backend_port() -> int:
    return int(env.text("BACKEND_BIND").rpartition(":")[2])
