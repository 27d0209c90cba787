"""Single flight: one request renders, the others wait.

A lock in Redis makes it work across threads, processes and hosts.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import cast

from django.core.cache import caches
from django_redis import get_redis_connection  # type: ignore[import-untyped]
from redis import Redis
from redis.exceptions import RedisError
from redis.lock import Lock

HIT, MISS, UNAVAILABLE = "hit", "miss", "unavailable"

# An old version is never requested again. When Redis is full it evicts the least recently used keys
# (redis/redis.conf); otherwise this expires them.
LIFETIME_SECONDS = 3600
# If the rendering process dies, the others wait this long. A live one renews its lock, so rendering
# can take longer.
LOCK_SECONDS = 2.0
RENEWAL_SECONDS = 0.5
# A request that has waited this long for a live lock is rejected. For gzip it can wait twice, for
# the compressed body and for the plain one, so LAB_TIMEOUT must be longer than both waits.
WAIT_SECONDS = 10.0
# Between two GETs: short at first, since fast rendering takes 40 ms.
FIRST_PAUSE_SECONDS = 0.005
MAX_PAUSE_SECONDS = 0.05


class StillBuildingError(Exception):
    """Another request has been rendering the body for longer than WAIT_SECONDS."""


def get_or_build(name: str, build: Callable[[], bytes]) -> tuple[bytes, str]:
    """Return the bytes cached as `name`, or those of `build`, which are then cached; and the
    outcome.

    Without Redis every request calls `build`. Errors of `build` are raised, and nothing is cached.

    Raises:
        StillBuildingError: another request renders the body, for too long.
    """
    redis, key = get_redis_connection(), caches["default"].make_key(name)
    try:
        body, lock = _get_or_lock(redis, key)
    except RedisError:
        return build(), UNAVAILABLE
    if body is not None:
        return body, HIT
    if lock is None:
        raise StillBuildingError
    with _renewal(lock):
        return _store(redis, key, build()), MISS


def _get_or_lock(redis: Redis, key: str) -> tuple[bytes | None, Lock | None]:
    """Return the cached bytes, or the lock to render them, or neither after WAIT_SECONDS."""
    if (body := _get(redis, key)) is not None:
        return body, None
    # Not thread-local: another thread renews it.
    lock = redis.lock(f"{key}:lock", timeout=LOCK_SECONDS, blocking=False, thread_local=False)
    pause, deadline = FIRST_PAUSE_SECONDS, time.monotonic() + WAIT_SECONDS
    while body is None and time.monotonic() < deadline:
        if lock.acquire():
            return _get_under_lock(redis, key, lock)
        time.sleep(pause)
        pause = min(pause * 1.5, MAX_PAUSE_SECONDS)
        body = _get(redis, key)
    return body, None


def _get_under_lock(redis: Redis, key: str, lock: Lock) -> tuple[bytes | None, Lock | None]:
    """GET again: the previous holder of the lock may have finished between our GET and our lock."""
    body = _get(redis, key)
    if body is None:
        return None, lock
    _release(lock)
    return body, None


@contextmanager
def _renewal(lock: Lock) -> Iterator[None]:
    """Renew the lock during the block, and release it afterwards."""
    done = threading.Event()
    threading.Thread(target=_renew, args=(lock, done), daemon=True).start()
    try:
        yield
    finally:
        done.set()
        _release(lock)


def _renew(lock: Lock, done: threading.Event) -> None:
    while not done.wait(RENEWAL_SECONDS):
        with suppress(RedisError):
            lock.reacquire()


def _release(lock: Lock) -> None:
    """Release the lock. If Redis is down, or another request has the lock, it expires by itself."""
    with suppress(RedisError):
        lock.release()


def _get(redis: Redis, key: str) -> bytes | None:
    return cast("bytes | None", redis.get(key))


def _store(redis: Redis, key: str, body: bytes) -> bytes:
    try:
        redis.set(key, body, ex=LIFETIME_SECONDS)
    except RedisError:
        return body  # Respond anyway.
    return body
