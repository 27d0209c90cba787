"""The reference server as a process of its own, and what the loopback adds to its times."""

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

from lab.analysis.windows import STEP_SECONDS, highest_rate
from lab.errors import LabError
from lab.host.cpus import bind
from lab.paths import ROOT
from lab.settings import LOOPBACK
from lab.suites.calibration.server import PROBE
from lab.suites.calibration.service_times import Law


@dataclass(frozen=True)
class Truth:
    """Of each request of the load: seconds from its arrival to its answer, and how late its answer
    was by the law. `seconds_in_all` goes from the first arrival to the last answer, `computed` is
    the CPU time in seconds that the law's work took. `best_rate` is the most answers per second in
    any of the lab's windows, which begin with the first arrival.
    """

    seconds: list[float]
    late: list[float]
    seconds_in_all: float
    probes: list[float]
    cut_off: int
    computed: float = 0.0
    best_rate: float | None = None

    @property
    def requests(self) -> int:
        return len(self.seconds)

    @property
    def rate(self) -> float:
        """Requests per second, from the first arrival to the last answer."""
        return self.requests / self.seconds_in_all if self.seconds_in_all else 0.0

    def milliseconds(self, share: float) -> float:
        """A percentile of the server's own times; `share` in percent."""
        return 1000 * percentile(self.seconds, share)

    @property
    def mean_ms(self) -> float:
        return 1000 * sum(self.seconds) / self.requests if self.requests else 0.0

    @property
    def work_ms(self) -> float:
        """CPU time of one answer: of work that is always the same, how slow the CPU was."""
        return 1000 * self.computed / self.requests if self.requests else 0.0

    def late_ms(self, share: float) -> float:
        """A percentile of how late the timer was."""
        return 1000 * percentile(self.late, share)

    def probe_ms(self) -> float:
        return 1000 * median(self.probes) if self.probes else 0.0


def read_truth(record: dict[str, Any]) -> Truth:
    """From what server.py writes."""
    received, due, answered = (record[name] for name in ("received", "due", "answered"))
    return Truth(
        seconds=sorted(end - start for start, end in zip(received, answered, strict=True)),
        late=sorted(end - when for when, end in zip(due, answered, strict=True)),
        seconds_in_all=max(answered) - min(received) if received else 0.0,
        probes=record["probes"],
        cut_off=record["cut_off"],
        computed=record["computed"],
        best_rate=_best_rate(min(received), sorted(answered)) if received else None,
    )


def _best_rate(began: float, answered: list[float]) -> float | None:
    """`answered` sorted. At a constant rate it is more than that rate: answers vary, and what a
    stall held back comes together.
    """
    moments = range(0, round(answered[-1] - began) + 1, STEP_SECONDS)
    return highest_rate([bisect_right(answered, began + moment) for moment in moments])


def percentile(ordered: Sequence[float], share: float) -> float:
    """Of sorted values, between the two nearest as k6 does it; 0 without any.

    https://github.com/grafana/k6/blob/v1.8.1/metrics/sink.go (TrendSink.P)
    """
    if not ordered:
        return 0.0
    place = share / 100 * (len(ordered) - 1)
    below = ordered[int(place)]
    above = ordered[min(int(place) + 1, len(ordered) - 1)]
    return below + (above - below) * (place - int(place))


_END_SECONDS = 30
# As far apart as the requests of 200/s: a program that just slept wakes later.
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

    def stop(self) -> Truth:
        """End it; what it did.

        Raises:
            LabError: it ended before, or says nothing.
        """
        try:
            said, _ = self._process.communicate(timeout=_END_SECONDS)
            return read_truth(json.loads(said))
        except (ValueError, KeyError, subprocess.TimeoutExpired) as error:
            raise LabError(f"The reference server ended without its record ({error}).") from None


@contextmanager
def serving(law: Law, cpus: str) -> Iterator[Reference]:
    """The reference server on those CPUs; gone when the block ends.

    Raises:
        LabError: it does not start.
    """
    argv = [sys.executable, "-m", "lab.suites.calibration.server", law.kind, str(law.ms)]
    with subprocess.Popen(
        ["taskset", "-c", cpus, *argv],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # The terminal's Ctrl-C is for us; its standard input ends with us.
        start_new_session=True,
    ) as process:
        try:
            yield Reference(process, _port(process))
        finally:
            process.kill()


def _port(process: "subprocess.Popen[str]") -> int:
    said = process.stdout.readline() if process.stdout else ""
    if not said.strip().isdigit():
        raise LabError("The reference server did not start; its message stands above.")
    return int(said)


def round_trip_ms(port: int, cpus: set[int]) -> float:
    """What a client without a load generator measures of an answer that is given at once: the
    median, in ms. The server's own part of it is in its record.

    Raises:
        LabError: it does not answer within 5 s.
    """
    # A thread of its own, since a thread keeps the CPUs that it is bound to.
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
    began = time.perf_counter()
    connection.sendall(_PROBE_REQUEST)
    connection.recv(4096)
    return time.perf_counter() - began
