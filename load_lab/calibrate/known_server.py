"""The reference server as a separate process, and the time that the loopback adds."""

import json
import socket
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from load_lab.calibrate.server import PROBE
from load_lab.calibrate.service_times import ServiceTime
from load_lab.errors import LabError
from load_lab.machine.cpus import bind
from load_lab.metrics.windows import STEP_SECONDS, highest_rate
from load_lab.paths import lab_file
from load_lab.settings import LOOPBACK


@dataclass(frozen=True)
class ReferenceValues:
    """Reference values of each request: seconds from its arrival to its response, and how late its
    response was by the service-time model. `total_seconds` is from the first arrival to the last
    response, `work_seconds` the CPU time in seconds of the model's work. `best_rate` is the highest
    rate of responses in any of the lab's windows, which start with the first arrival.
    """

    seconds: list[float]
    late: list[float]
    total_seconds: float
    probes: list[float]
    cut_off: int
    work_seconds: float = 0.0
    best_rate: float | None = None

    @property
    def requests(self) -> int:
        return len(self.seconds)

    @property
    def rate(self) -> float:
        """Return requests per second, from the first arrival to the last response."""
        return self.requests / self.total_seconds if self.total_seconds else 0.0

    def milliseconds(self, share: float) -> float:
        """Return a percentile of the server's own times; `share` in percent."""
        return 1000 * percentile(self.seconds, share)

    @property
    def mean_ms(self) -> float:
        return 1000 * sum(self.seconds) / self.requests if self.requests else 0.0

    @property
    def work_ms(self) -> float:
        """Return the CPU time of one response. With constant work it shows the CPU's speed."""
        return 1000 * self.work_seconds / self.requests if self.requests else 0.0

    def late_ms(self, share: float) -> float:
        """Return a percentile of the timer's delays."""
        return 1000 * percentile(self.late, share)

    def probe_ms(self) -> float:
        return 1000 * median(self.probes) if self.probes else 0.0


def reference_values(record: dict[str, Any]) -> ReferenceValues:
    """Read the record of server.py."""
    received, due, answered = (record[name] for name in ("received", "due", "answered"))
    return ReferenceValues(
        seconds=sorted(end - start for start, end in zip(received, answered, strict=True)),
        late=sorted(end - when for when, end in zip(due, answered, strict=True)),
        total_seconds=max(answered) - min(received) if received else 0.0,
        probes=record["probes"],
        cut_off=record["cut_off"],
        work_seconds=record["computed"],
        best_rate=_best_rate(min(received), sorted(answered)) if received else None,
    )


def _best_rate(start: float, answered: list[float]) -> float | None:
    """Return the best rate; `answered` is sorted. At a constant rate the best is above that rate:
    response times vary, and responses after a stall arrive together.
    """
    moments = range(0, round(answered[-1] - start) + 1, STEP_SECONDS)
    return highest_rate([bisect_right(answered, start + moment) for moment in moments])


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values, interpolated like k6's; 0 without values.

    https://github.com/grafana/k6/blob/v2.2.0/metrics/sink.go (TrendSink.P)
    """
    if not ordered:
        return 0.0
    position = share / 100 * (len(ordered) - 1)
    below = ordered[int(position)]
    above = ordered[min(int(position) + 1, len(ordered) - 1)]
    return below + (above - below) * (position - int(position))


_END_SECONDS = 30
# The interval of the requests at 200/s: a program that has just slept wakes later.
_PROBES, _PROBE_PAUSE = 150, 0.005
_PROBE_REQUEST = b"GET %b HTTP/1.1\r\nHost: reference\r\n\r\n" % PROBE


class Reference:
    """A running reference server."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self._process, self.port = process, port

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> ReferenceValues:
        """Stop the server, and return its record.

        Raises:
            LabError: it ended earlier, or left no record.
        """
        try:
            output, _ = self._process.communicate(timeout=_END_SECONDS)
            return reference_values(json.loads(output))
        except (ValueError, KeyError, subprocess.TimeoutExpired) as error:
            raise LabError(f"The reference server ended without its record ({error}).") from None


@contextmanager
def reference_server(service_time: ServiceTime, cpus: str) -> Iterator[Reference]:
    """Run the reference server on those CPUs for the context.

    Raises:
        LabError: it does not start.
    """
    argv = [
        sys.executable,
        "-m",
        "load_lab.calibrate.server",
        service_time.kind,
        str(service_time.ms),
    ]
    with subprocess.Popen(
        ["taskset", "-c", cpus, *argv],
        cwd=lab_file(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A new session: the terminal's Ctrl-C is for the lab. Standard input ends with the lab.
        start_new_session=True,
    ) as process:
        try:
            yield Reference(process, _port(process))
        finally:
            process.kill()


def _port(process: "subprocess.Popen[str]") -> int:
    line = process.stdout.readline() if process.stdout else ""
    if not line.strip().isdigit():
        raise LabError("The reference server did not start; its message stands above.")
    return int(line)


def round_trip_ms(port: int, cpus: set[int]) -> float:
    """Return the median time in ms of an immediate response, measured without a load generator. The
    server's own part of it is in its record.

    Raises:
        LabError: there is no response within 5 s.
    """
    # A separate thread, since a thread keeps the CPUs to which it is bound.
    with ThreadPoolExecutor(1) as pool:
        try:
            return 1000 * median(pool.submit(_round_trips, port, cpus).result())
        except OSError as error:
            raise LabError(f"The reference server does not answer ({error}).") from None


def _round_trips(port: int, cpus: set[int]) -> list[float]:
    bind(cpus)
    with socket.create_connection((LOOPBACK, port), timeout=5) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return [_round_trip(connection) for _ in range(_PROBES)]


def _round_trip(connection: socket.socket) -> float:
    time.sleep(_PROBE_PAUSE)
    start = time.perf_counter()
    connection.sendall(_PROBE_REQUEST)
    connection.recv(4096)
    return time.perf_counter() - start
