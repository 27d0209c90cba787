"""The requests that an overload left to a server: until they are done, it answers no others."""

import time
from contextlib import closing

from load_lab.machine.sockets import TcpDiagnosis

_REPORT_SECONDS = 10


def unanswered(port: int) -> set[bytes]:
    """Return the connections with a request that the server on a port has not answered yet; empty
    where the kernel does not tell.
    """
    try:
        with closing(TcpDiagnosis()) as tcp:
            return tcp.unanswered(port)
    except OSError:
        return set()


class Backlog:
    """The requests that were at a server's port when the lab began to wait for it. New ones do not
    count, so that waiting for them ends.

    It is a condition of tenacity to stop: that none of them was answered for `seconds`.
    """

    def __init__(self, name: str, port: int, seconds: float) -> None:
        self._name, self._port, self._seconds = name, port, seconds
        self._requests = unanswered(port) if port else set()
        self._moved_at, self._reported_at = time.monotonic(), 0.0

    def __bool__(self) -> bool:
        return bool(self._requests)

    def __call__(self, _state: object) -> bool:
        if self._requests:
            self._look()
        return time.monotonic() - self._moved_at >= self._seconds

    def _look(self) -> None:
        left = self._requests & unanswered(self._port)
        if left < self._requests:
            self._requests, self._moved_at = left, time.monotonic()
        if left and time.monotonic() - self._reported_at > _REPORT_SECONDS:
            # Rich: the exporter, which imports this, starts without it.
            from load_lab.console import note

            self._reported_at = time.monotonic()
            note(f"{self._name} first answers {len(left)} earlier requests; waiting for that.")

    @property
    def problem(self) -> str:
        """Return what did not move, and what to do, for an error message."""
        if not self._requests:
            return ""
        return (
            f" {len(self._requests)} earlier requests are before it, and none of them was answered "
            f"for {self._seconds:.0f} s. `lab down`, then `lab up` drops them."
        )
