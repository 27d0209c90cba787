"""An ASGI app whose requests wait, as WAIT names it: `blocking` blocks its event loop."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor

_SECONDS = 0.04
_semaphore = asyncio.Semaphore(1)
_two_threads = ThreadPoolExecutor(2)


async def semaphore():
    async with _semaphore:
        await asyncio.sleep(_SECONDS)


async def executor():
    await asyncio.get_running_loop().run_in_executor(_two_threads, time.sleep, 2 * _SECONDS)


async def blocking():
    time.sleep(_SECONDS)


_WAITS = {"semaphore": semaphore, "executor": executor, "blocking": blocking}
WAIT = _WAITS[os.environ["WAIT"]]


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] != "/healthz":
        await WAIT()
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})
