"""One builds, the others wait for it: across threads, processes and hosts, by a lock in Redis."""

import secrets
import threading
import time
from collections.abc import Callable
from typing import cast

from django.core.cache import caches
from django_redis import get_redis_connection  # type: ignore[import-untyped]
from redis import Redis
from redis.exceptions import RedisError

HIT, MISS, UNAVAILABLE = "hit", "miss", "unavailable"

# A version that changed is never asked for again; Redis throws the least recently used out first
# when it is full (redis/redis.conf), and this when it is not.
KEPT_SECONDS = 3600
# A builder that died holds the others up for this long. One that lives renews its lock, so a build
# may take longer.
LOCK_SECONDS = 2.0
RENEWED_EVERY_SECONDS = 0.5
# Who waited this long builds for itself.
WAIT_SECONDS = 10.0
# Between two looks: short at first, since a quick build takes 40 ms.
FIRST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 0.05

# Only the holder may touch its lock: by now it may have run out and be another's.
_RENEW = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) end"
_RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end"


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
    if lock is None:
        return _keep(redis, key, make()), MISS
    with lock:
        return _keep(redis, key, make()), MISS


class BuildLock:
    """The right to build, held by a token and renewed for as long as the builder works."""

    def __init__(self, redis: Redis, key: str) -> None:
        self._redis = redis
        self._key = f"{key}:lock"
        self._token = secrets.token_hex(8)
        self._done = threading.Event()

    def take(self) -> bool:
        """Whether it was free, and now is ours."""
        milliseconds = int(LOCK_SECONDS * 1000)
        return bool(self._redis.set(self._key, self._token, nx=True, px=milliseconds))

    def release(self) -> None:
        self._if_ours(_RELEASE)

    def __enter__(self) -> None:
        threading.Thread(target=self._renew, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.release()

    def _renew(self) -> None:
        while not self._done.wait(RENEWED_EVERY_SECONDS):
            self._if_ours(_RENEW, int(LOCK_SECONDS * 1000))

    def _if_ours(self, script: str, *arguments: int) -> None:
        try:
            self._redis.eval(script, 1, self._key, self._token, *arguments)
        except RedisError:
            return  # Then it runs out by itself.


def _find_or_lock(redis: Redis, key: str) -> tuple[bytes | None, BuildLock | None]:
    """The kept bytes, or the lock to build them; neither when the wait was too long."""
    lock, pause = BuildLock(redis, key), FIRST_PAUSE_SECONDS
    deadline = time.monotonic() + WAIT_SECONDS
    while (body := _get(redis, key)) is None and time.monotonic() < deadline:
        if lock.take():
            return _unless_just_kept(redis, key, lock)
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
    return body, None


def _unless_just_kept(
    redis: Redis, key: str, lock: BuildLock
) -> tuple[bytes | None, BuildLock | None]:
    """The builder before us may have finished between our look and our lock."""
    body = _get(redis, key)
    if body is None:
        return None, lock
    lock.release()
    return body, None


def _get(redis: Redis, key: str) -> bytes | None:
    return cast("bytes | None", redis.get(key))


def _keep(redis: Redis, key: str, body: bytes) -> bytes:
    try:
        redis.set(key, body, ex=KEPT_SECONDS)
    except RedisError:
        return body  # Answered all the same.
    return body
