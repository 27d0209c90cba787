"""What the cache costs answers that it must not store: their p95 with it ÷ without it, at 60/s.

Alone on the machine; the figures are printed: .venv/bin/python -m pytest -m alone
tests/nginx/test_unstored_answers.py
"""

import asyncio
import time
from contextlib import ExitStack
from statistics import quantiles
from typing import ClassVar

import pytest

from tests.support.http_server import QuietHandler, serve_http
from tests.support.nginx_front import LIST, Backend, front
from tests.support.target_front import target_front

RATE, SECONDS, ANSWER_SECONDS = 60, 10, 0.05
MAX_RATIO = 1.1
# Of the reference app's Nginx: other statuses than 200, no lifetime, a cookie.
REFERENCE = {
    "404": (404, {}),
    "302": (302, {"Location": "/login/"}),
    "no lifetime": (200, {}),
    "cookie": (200, {"Set-Cookie": "session=1", "X-Accel-Expires": "60"}),
}
TARGET = {
    "404": (404, {}),
    "302": (302, {"Location": "/login/"}),
    "cookie": (200, {"Set-Cookie": "session=1"}),
    "private": (200, {"Cache-Control": "private"}),
    "vary": (200, {"Vary": "X-Tenant"}),
}


class Handler(QuietHandler):
    """Answers with what `special` has for the path; before that as a page for everybody."""

    special: ClassVar[dict[str, tuple[int, dict[str, str]]]] = {}

    def do_GET(self) -> None:
        status, headers = self.special.get(self.path, (200, {}))
        time.sleep(ANSWER_SECONDS)
        self.send_response(status)
        for name, value in {"Content-Length": "2", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"{}")


async def _send(port, path, durations):
    began = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n".encode())
    await reader.read()
    writer.close()
    durations.append(time.monotonic() - began)


async def _load(arms):
    """Send RATE requests/s to each arm, in turns, without waiting for earlier ones."""
    durations = [[] for _ in arms]
    begin = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for number in range(RATE * SECONDS):
            await asyncio.sleep(max(0, begin + number / RATE - time.monotonic()))
            for (port, path), measured in zip(arms, durations, strict=True):
                group.create_task(_send(port, path, measured))
    return [quantiles(each, n=20)[-1] for each in durations]


def _check_ratio(kind, without, protected, capsys):
    # The cold start: the requests that came before the first answer wait for it, once.
    without_p95, protected_p95 = asyncio.run(_load([without, protected]))
    ratio = protected_p95 / without_p95
    with capsys.disabled():
        print(
            f"\n{kind}: p95 {without_p95 * 1000:.1f} ms without the cache, "
            f"{protected_p95 * 1000:.1f} ms with it: {ratio:.2f}"
        )
    assert ratio <= MAX_RATIO


@pytest.mark.alone
@pytest.mark.parametrize("kind", REFERENCE)
def test_reference_front_costs_unstored_answers_nothing(tmp_path, kind, capsys):
    status, headers = REFERENCE[kind]
    with ExitStack() as stack:
        ports = []
        for mode in ("off", "protected"):
            backend = Backend()
            backend.status, backend.delay = status, ANSWER_SECONDS
            backend.headers = list(headers.items())
            (tmp_path / mode).mkdir()
            client = stack.enter_context(front(tmp_path / mode, backend, LAB_NGINX_CACHE=mode))
            ports.append(client.base_url.port)
        _check_ratio(f"reference, {kind}", *((port, LIST) for port in ports), capsys)


@pytest.mark.alone
@pytest.mark.parametrize("is_known", [True, False], ids=["known before", "changed during the load"])
@pytest.mark.parametrize("kind", TARGET)
def test_front_of_a_target_costs_unstored_answers_nothing(tmp_path, kind, is_known, capsys):
    Handler.special = {"/cart/": TARGET[kind]} if is_known else {}
    with ExitStack() as stack:
        url = stack.enter_context(serve_http(Handler))
        ports = []
        for mode in ("off", "protected"):
            (tmp_path / mode).mkdir()
            opened = target_front(url, tmp_path / mode, mode, ["GET /cart/"], seconds=1)
            ports.append(stack.enter_context(opened).base_url.port)
        Handler.special = {"/cart/": TARGET[kind]}
        what = f"own app, {kind}{'' if is_known else ', changed during the load'}"
        _check_ratio(what, *((port, "/cart/") for port in ports), capsys)
