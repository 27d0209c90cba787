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
MOST_TIMES = 3.0
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
    with ExitStack() as held:
        clients = [held.enter_context(Client(port)) for _ in range(IDLE)]
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

    def answered(self) -> int:
        """Return how many clients received data. None has sent its complete request."""
        with selectors.DefaultSelector() as looked_at:
            for client in self._clients:
                looked_at.register(client.socket, selectors.EVENT_READ)
            return len(looked_at.select(timeout=0))

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        for client in self._clients:
            client.close()


def _seconds(port) -> list[float]:
    """Return the durations, in seconds, of other clients' reads and rejected bookings."""
    taken = []
    for number in range(OTHERS):
        began = time.monotonic()
        if number % 3:
            answer = send_request(port, head("/api/hotel/"))
            assert answer.status == 200
        else:
            answer = send_request(port, post("/api/booking/", b"{}"))
            assert answer.status == 400
        taken.append(time.monotonic() - began)
    return taken


def _p95(seconds):
    return quantiles(seconds, n=20)[-1]


def test_slow_clients_do_not_slow_down_others(stack, capsys):
    port = stack.settings().LAB_HTTP_PORT
    _seconds(port)
    alone = _p95(_seconds(port))
    with _idle(port) as idle, _Drip(port) as slow:
        beside = _p95(_seconds(port))
        assert slow.answered() == 0, "they were let go before the others were done"
        for client in idle[:2]:
            client.send(head("/api/hotel/"))
            assert client.answer().status == 200
    with capsys.disabled():
        print(f"\np95 {alone * 1000:.1f} ms alone, {beside * 1000:.1f} ms beside {IDLE + SLOW}")
    assert beside <= max(MOST_TIMES * alone, FLOOR_SECONDS)


def test_client_with_incomplete_header_is_disconnected(stack):
    """client_header_timeout is 10 s; single bytes do not extend it."""
    began = time.monotonic()
    with Client(stack.settings().LAB_HTTP_PORT) as client:
        client.socket.settimeout(1)
        while _is_kept(client):
            assert time.monotonic() < began + 25
    assert time.monotonic() > began + 8


def _is_kept(client):
    """Send a byte and return whether the server keeps the connection for another second."""
    try:
        client.send(b"G")
        return bool(client.socket.recv(1))
    except TimeoutError:
        return True
    except ConnectionError:
        return False
