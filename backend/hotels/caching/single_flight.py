"""One builds, the others wait for it: across threads, processes and hosts, by a lock in Redis."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import cast

from django.core.cache import caches
from django_redis import get_redis_connection  # type: ignore[import-untyped]
from redis import Redis
from redis.exceptions import RedisError
from redis.lock import Lock

HIT, MISS, UNAVAILABLE = "hit", "miss", "unavailable"

# A version that changed is never asked for again; Redis throws the least recently used out first
# when it is full (redis/redis.conf), and this when it is not.
KEPT_SECONDS = 3600
# A builder that died holds the others up for this long. One that lives renews its lock, so a build
# may take longer.
LOCK_SECONDS = 2.0
RENEWED_EVERY_SECONDS = 0.5
# A request that has waited this long builds without the lock. For gzip it can wait twice, for the
# compressed body and for the plain one, so LAB_TIMEOUT has to be longer than both waits.
WAIT_SECONDS = 10.0
# Between two looks: short at first, since a quick build takes 40 ms.
FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 0.05


def kept_or_made(name: str, make: Callable[[], bytes]) -> tuple[bytes, str]:
    """The bytes kept as `name`, else those of `make`, which are then kept; and the outcome.

    Without Redis everyone makes their own. What `make` raises is passed on, and nothing is kept.
    """
    redis, key = get_redis_connection(), caches["default"].make_key(name)
    try:
        body, lock = _find_or_lock(redis, key)
    except RedisError:
        return make(), UNAVAILABLE
    if body is not None:
        return body, HIT
    with _renewed(lock) if lock else nullcontext():
        return _keep(redis, key, make()), MISS


def _find_or_lock(redis: Redis, key: str) -> tuple[bytes | None, Lock | None]:
    """The kept bytes, or the lock to build them; neither when the wait was too long."""
    if (body := _get(redis, key)) is not None:
        return body, None
    # Not of a thread: another one renews it.
    lock = redis.lock(f"{key}:lock", timeout=LOCK_SECONDS, blocking=False, thread_local=False)
    pause, deadline = FIRST_PAUSE_SECONDS, time.monotonic() + WAIT_SECONDS
    while body is None and time.monotonic() < deadline:
        if lock.acquire():
            return _unless_just_kept(redis, key, lock)
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
        body = _get(redis, key)
    return body, None


def _unless_just_kept(redis: Redis, key: str, lock: Lock) -> tuple[bytes | None, Lock | None]:
    """The builder before us may have finished between our look and our lock."""
    body = _get(redis, key)
    if body is None:
        return None, lock
    _release(lock)
    return body, None


@contextmanager
def _renewed(lock: Lock) -> Iterator[None]:
    """Held for as long as the block takes, and free afterwards."""
    done = threading.Event()
    threading.Thread(target=_renew, args=(lock, done), daemon=True).start()
    try:
        yield
    finally:
        done.set()
        _release(lock)


def _renew(lock: Lock, done: threading.Event) -> None:
    while not done.wait(RENEWED_EVERY_SECONDS):
        with suppress(RedisError):
            lock.reacquire()


def _release(lock: Lock) -> None:
    """Where Redis can't hear it, or the lock is another's by now, it runs out by itself."""
    with suppress(RedisError):
        lock.release()


def _get(redis: Redis, key: str) -> bytes | None:
    return cast("bytes | None", redis.get(key))


def _keep(redis: Redis, key: str, body: bytes) -> bytes:
    try:
        redis.set(key, body, ex=KEPT_SECONDS)
    except RedisError:
        return body  # Answered all the same.
    return body
