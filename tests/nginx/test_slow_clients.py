"""Nginx shields the backend from idle clients and from clients that send byte by byte.

500 clients only hold a connection, half of them after a first response, and 500 send a request byte
by byte. Reads and bookings of other clients continue normally.
"""

import resource
import selectors
import threading
import time
from contextlib import ExitStack, contextmanager
from statistics import quantiles

import pytest

from tests.support.raw_http import Client, head, post, send_request

IDLE, SLOW = 500, 500
OTHERS = 300
# Interval between the bytes of each slow client. Nginx disconnects clients after 10 s without a
# complete header.
PAUSE_SECONDS = 0.2
# Maximum factor compared to the p95 without slow clients. The floor covers noise on machines where
# it exceeds a response time.
MAX_FACTOR = 3.0
FLOOR_SECONDS = 0.05


@pytest.fixture(autouse=True)
def many_files():
    """Raise the limit of open files for 2,000 sockets; many systems default to 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip(f"this system allows {hard} open files; the test needs 4,096")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def _idle(port):
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(port)) for _ in range(IDLE)]
        for client in clients[::2]:
            client.send(head("/no-such-page"))
            client.answer()
        yield clients


class _Drip:
    """Sends requests byte by byte: half of the clients send a header, the others a body."""

    def __init__(self, port) -> None:
        body = post("/api/booking/", b" " * 40_000)
        self._requests = [body[:-38_000] if n % 2 else head("/api/hotel/") for n in range(SLOW)]
        self._clients = [Client(port) for _ in range(SLOW)]
        self._rest = [
            b" " * 38_000 if n % 2 else request for n, request in enumerate(self._requests)
        ]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "_Drip":
        for client, request in list(zip(self._clients, self._requests, strict=True))[1::2]:
            client.send(request)
        self._thread.start()
        return self

    def _run(self) -> None:
        at = 0
        while not self._end.wait(PAUSE_SECONDS):
            for client, rest in zip(self._clients, self._rest, strict=True):
                client.send(rest[at : at + 1])
            at += 1

    def count_responses(self) -> int:
        """Return how many clients received data. None has sent its complete request."""
        with selectors.DefaultSelector() as selector:
            for client in self._clients:
                selector.register(client.socket, selectors.EVENT_READ)
            return len(selector.select(timeout=0))

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        for client in self._clients:
            client.close()


def _seconds(port) -> list[float]:
    """Return the durations, in seconds, of other clients' reads and rejected bookings."""
    durations = []
    for number in range(OTHERS):
        start = time.monotonic()
        if number % 3:
            response = send_request(port, head("/api/hotel/"))
            assert response.status == 200
        else:
            response = send_request(port, post("/api/booking/", b"{}"))
            assert response.status == 400
        durations.append(time.monotonic() - start)
    return durations


def _p95(seconds):
    return quantiles(seconds, n=20)[-1]


def test_slow_clients_do_not_slow_down_others(stack, capsys):
    port = stack.settings().LAB_HTTP_PORT
    _seconds(port)
    baseline = _p95(_seconds(port))
    with _idle(port) as idle, _Drip(port) as slow:
        under_load = _p95(_seconds(port))
        assert slow.count_responses() == 0, "they were disconnected before the others finished"
        for client in idle[:2]:
            client.send(head("/api/hotel/"))
            assert client.answer().status == 200
    with capsys.disabled():
        print(
            f"\np95 {baseline * 1000:.1f} ms without slow clients, "
            f"{under_load * 1000:.1f} ms with {IDLE + SLOW}"
        )
    assert under_load <= max(MAX_FACTOR * baseline, FLOOR_SECONDS)


def test_client_with_incomplete_header_is_disconnected(stack):
    """client_header_timeout is 10 s; single bytes do not extend it."""
    start = time.monotonic()
    with Client(stack.settings().LAB_HTTP_PORT) as client:
        client.socket.settimeout(1)
        while _is_connected(client):
            assert time.monotonic() < start + 25
    assert time.monotonic() > start + 8


def _is_connected(client):
    """Send a byte and return whether the server keeps the connection for another second."""
    try:
        client.send(b"G")
        return bool(client.socket.recv(1))
    except TimeoutError:
        return True
    except ConnectionError:
        return False
