"""The reference server as a process of its own, and what the loopback adds to its times."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median

from lab.errors import LabError
from lab.host.cpus import bind
from lab.paths import ROOT
from lab.settings import LOOPBACK
from lab.suites.calibration.reference_values import Truth, read_truth
from lab.suites.calibration.server import PROBE
from lab.suites.calibration.service_times import Law

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
