"""Redis may be gone, refuse, or hang: the API then answers without it, and is hardly slower.

Every command goes through one breaker per process. After a failure nobody asks for a second; then
one request tries, and the others follow when it succeeds. So a Redis that hangs costs a process one
timeout per second, and one that comes back is used again within a second.
"""

import logging
import threading
import time
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0
GONE = "Redis does not answer, the API goes on without it: %s"
BACK = "Redis answers again."
NOT_ASKED = "Redis failed less than a second ago and is not asked."


class NotAskedError(RedisConnectionError):
    """The breaker is open."""


class _Here(threading.local):
    failures = 0


class Breaker:
    """Closed: everyone asks. Open: nobody does, but one per pause."""

    def __init__(self, pause: float = PAUSE_SECONDS) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self._next_try: float | None = None

    def enter(self) -> None:
        """Raises:
        NotAskedError: the breaker is open, and somebody else tries next.
        """
        if self._next_try is None:
            return
        with self._lock:
            now = time.monotonic()
            if self._next_try is not None and now < self._next_try:
                raise NotAskedError(NOT_ASKED)
            self._next_try = now + self._pause

    def failed(self, error: Exception) -> None:
        """Open, or stay open for another pause."""
        with self._lock:
            if self._next_try is None:
                logger.warning(GONE, error)
            self._next_try = time.monotonic() + self._pause

    def succeeded(self) -> None:
        """Close."""
        if self._next_try is None:
            return
        with self._lock:
            was_open, self._next_try = self._next_try is not None, None
        if was_open:
            logger.warning(BACK)


_breaker = Breaker()
_here = _Here()


def failures_here() -> int:
    """How many commands of this thread went wrong: django-redis keeps errors to itself."""
    return _here.failures


class GuardedRedis(Redis):
    """redis-py's client behind the breaker; django-redis and we use the same."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        try:
            _breaker.enter()
            answer = super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except (RedisConnectionError, RedisTimeoutError) as error:
            _here.failures += 1
            if not isinstance(error, NotAskedError):
                _breaker.failed(error)
            raise
        _breaker.succeeded()
        return answer
