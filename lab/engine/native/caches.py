"""Emptying every cache of the native engine, and every queue."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import redis

from lab.engine.native.supervision import Supervision, port_is_taken, wait_for
from lab.errors import LabError
from lab.paths import State
from lab.settings import LOOPBACK, Settings

# In the order in which they are started.
_STOPPED = ("backend", "nginx")


@contextmanager
def emptied(supervision: Supervision, settings: Settings, state: State) -> Iterator[None]:
    """Redis, Nginx' pages, what the backend's processes hold, and what waits for them.

    Nginx knows its files by memory that outlives a reload, and a socket keeps its queue as long as
    the server lives: both are stopped meanwhile, and started again whatever happens.

    Raises:
        LabError: Redis does not answer, or one of them does not come back.
    """
    try:
        for name in reversed(_STOPPED):
            supervision.stop_service(name)
        yield
        _empty_redis(settings)
        for folder in state.run.glob("cache-*"):
            shutil.rmtree(folder)
    finally:
        for name in _STOPPED:
            supervision.start_service(name)
    wait_for(lambda: _answer(settings), seconds=30, what="The stack with empty caches")


def _empty_redis(settings: Settings) -> None:
    try:
        redis.Redis(LOOPBACK, settings.LAB_REDIS_PORT, socket_timeout=10).flushall()
    except redis.RedisError as error:
        raise LabError(f"Redis can't be emptied ({error}). See `lab logs redis`.") from None


def _answer(settings: Settings) -> bool:
    if not port_is_taken(settings.LAB_BIND, settings.LAB_HTTP_PORT):
        return False
    try:
        return httpx.get(f"{settings.backend_url}/readyz", timeout=5).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
