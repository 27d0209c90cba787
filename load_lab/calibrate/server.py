"""The reference server: it responds by a service-time model, and records the actual times.

`python -m load_lab.calibrate.server KIND MILLISECONDS` prints its port, responds until its
standard input ends, and then prints its record. It has one thread, so that its clock readings are
in order.
"""

import asyncio
import gc
import json
import resource
import select
import selectors
import sys
import time
from array import array
from dataclasses import dataclass, field
from typing import Any, cast

from load_lab.calibrate.service_times import Kind, Model, ServiceTime

# Accepted by k6's setup(), and read by the scenario `list`.
_BODY = b'[{"id": "00000000-0000-4000-8000-000000000001"}]'
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(_BODY),
    _BODY,
)
_END = b"\r\n\r\n"
# Parts of addresses: setup()'s requests, and the probes for the loopback's floor.
SETUP, PROBE = b"setup=", b"/probe"


class PreciseSelector(selectors.EpollSelector):
    """Waits with select(2), which counts in microseconds; epoll_wait(2) counts in milliseconds."""

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout > 0:
            # select(2) can wait for an epoll file descriptor.
            select.select([self.fileno()], [], [], timeout)
        return super().select(0)


@dataclass
class Record:
    """Times of each request of the load, in seconds of the monotonic clock: when it was received,
    due and answered. `probes` has the duration of each probe, `cut_off` counts requests whose
    client disconnected first, `work_seconds` is the CPU time of the model itself.
    """

    received: "array[float]" = field(default_factory=lambda: array("d"))
    due: "array[float]" = field(default_factory=lambda: array("d"))
    answered: "array[float]" = field(default_factory=lambda: array("d"))
    probes: "array[float]" = field(default_factory=lambda: array("d"))
    cut_off: int = 0
    work_seconds: float = 0.0

    def as_json(self) -> str:
        lists = {name: list(getattr(self, name)) for name in ("received", "due", "answered")}
        rest = {"probes": list(self.probes), "cut_off": self.cut_off, "computed": self.work_seconds}
        return json.dumps({**lists, **rest})


class Connection(asyncio.Protocol):
    """A client's connection; it sends one request at a time."""

    def __init__(self, model: Model, record: Record, loop: asyncio.AbstractEventLoop) -> None:
        self._model, self._record, self._loop = model, record, loop
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        now = self._loop.time()
        self._buffer += data
        while _END in self._buffer:
            head, _, self._buffer = self._buffer.partition(_END)
            self._handle(head.partition(b"\r\n")[0], now)

    def _handle(self, line: bytes, now: float) -> None:
        if SETUP in line:
            self._transport.write(_ANSWER)
        elif PROBE in line:
            self._transport.write(_ANSWER)
            self._record.probes.append(self._loop.time() - now)
        else:
            start = time.thread_time()
            due = self._model.due(now)
            self._record.work_seconds += time.thread_time() - start
            self._loop.call_at(due, self._answer, now, due)

    def _answer(self, received: float, due: float) -> None:
        if self._transport.is_closing():
            self._record.cut_off += 1
            return
        self._transport.write(_ANSWER)
        self._record.received.append(received)
        self._record.due.append(due)
        self._record.answered.append(self._loop.time())


def main(kind: str, milliseconds: str) -> None:
    """Serve until standard input ends."""
    model, record = ServiceTime(cast(Kind, kind), float(milliseconds)).model(), Record()
    # A garbage collection would delay every response that is due during it.
    gc.disable()
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    loop = asyncio.SelectorEventLoop(PreciseSelector())
    server = loop.create_server(
        lambda: Connection(model, record, loop), "127.0.0.1", 0, backlog=4096
    )
    port = loop.run_until_complete(server).sockets[0].getsockname()[1]
    print(port, flush=True)
    loop.add_reader(sys.stdin, loop.stop)
    loop.run_forever()
    print(record.as_json(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
