"""A target for k6 with configurable faults: hotels, bookings, WebSockets and a workbench.

Uvicorn serves it in this process, so that a test can read its state and set its faults.
"""

import asyncio
import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

HOTELS, SUITES = 3, 4


@dataclass
class Target:
    """Settings of the faults, and records of the requests."""

    # Every nth message to sockets is dropped, or sent twice. 0: none.
    drop_every: int = 0
    double_every: int = 0
    # Without WebSockets and without the workbench.
    bare: bool = False
    # Number of sockets that are closed at the first booking.
    close: int = 0
    # Number of sockets that are accepted and never receive `ready`.
    mute: int = 0
    # Seconds until the workbench answers; number of its errors before each success.
    slow: float = 0
    errors: int = 0
    url: str = ""
    work_requests: int = 0
    messages: int = 0
    titles: list[str] = field(default_factory=list)
    _sockets: dict[str, set[Any]] = field(default_factory=dict)
    _closing: list[tuple[set[Any], Any, asyncio.Event]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._hotels = {
            _id("hotel", h): [_id("suite", h, s) for s in range(SUITES)] for h in range(HOTELS)
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._watch(scope["path"].split("/")[3], receive, send)
        elif scope["type"] == "http":
            status, body = await self._answer(scope["path"], scope["method"], receive)
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    async def _answer(self, path: str, method: str, receive: Any) -> tuple[int, Any]:
        body = (await receive())["body"]
        if path == "/api/hotel/":
            return 200, [{"id": hotel} for hotel in self._hotels]
        if path == "/api/booking/":
            return await self._book(json.loads(body))
        if path.startswith("/workbench/") and not self.bare:
            return await self._work(method, body.decode())
        if path.startswith("/workbench/"):
            return 404, {}
        hotel = path.split("/")[3]
        stay = {"check_out": "2026-01-01", "customers": [_id("customer")]}
        suites = [{"id": s, "capacity": 1, "bookings": [stay]} for s in self._hotels[hotel]]
        return 200, {"id": hotel, "suites": suites}

    async def _work(self, method: str, form: str) -> tuple[int, Any]:
        self.work_requests += 1
        if method == "POST" and not form:
            return 400, {}
        self.titles.append(form)
        await asyncio.sleep(self.slow)
        failing = self.errors and (self.work_requests - 1) % (self.errors + 1)
        return (503 if failing else 201 if method == "POST" else 200), {}

    async def _book(self, booking: dict[str, Any]) -> tuple[int, Any]:
        hotel = next(hotel for hotel, suites in self._hotels.items() if booking["suite"] in suites)
        stored = {**booking, "id": str(uuid.uuid4())}
        message = {"type": "availability", "hotel": hotel, "booking": stored["id"]}
        text = json.dumps({**message, "committed_at": time.time()})
        recipients, closing = list(self._sockets.get(hotel, ())), self._closing[: self.close]
        for sockets, send, _ in closing:
            sockets.discard(send)
        for send in recipients:
            for _ in range(self._copies()):
                await send({"type": "websocket.send", "text": text})
        for _, _, leave in closing:
            leave.set()
        return 201, stored

    def _copies(self) -> int:
        self.messages += 1
        if self.drop_every and self.messages % self.drop_every == 0:
            return 0
        return 2 if self.double_every and self.messages % self.double_every == 0 else 1

    async def _watch(self, hotel: str, receive: Any, send: Any) -> None:
        await receive()
        if self.bare or hotel not in self._hotels:
            await send({"type": "websocket.close", "code": 4404})
            return
        await send({"type": "websocket.accept"})
        if self.mute:
            self.mute -= 1
            while (await receive())["type"] == "websocket.receive":
                pass
            return
        self._sockets.setdefault(hotel, set()).add(send)
        leave = asyncio.Event()
        self._closing.append((self._sockets[hotel], send, leave))
        listening = asyncio.ensure_future(self._listen(hotel, receive, send))
        waits = [listening, asyncio.ensure_future(leave.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        self._sockets[hotel].discard(send)
        if leave.is_set():
            await send({"type": "websocket.close", "code": 1012})

    async def _listen(self, hotel: str, receive: Any, send: Any) -> None:
        """Send `ready`, and again after each message, until the client disconnects."""
        ready = {"type": "websocket.send", "text": json.dumps({"type": "ready", "hotel": hotel})}
        await send(ready)
        while (await receive())["type"] == "websocket.receive":
            await send(ready)


def _id(*parts: object) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, repr(parts)))


@contextmanager
def serve(target: Target) -> Iterator[Target]:
    """Serve the target at `target.url` during the `with` block."""
    config = uvicorn.Config(target, port=0, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    target.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield target
    finally:
        server.should_exit = True
        thread.join()
