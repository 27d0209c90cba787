"""Circuit breaker for Redis. If Redis is down, rejects or hangs, the API works without it.

Responses are then hardly slower. Every command passes one breaker per process. After a failure no
command is sent for a second; then one request tries, and the others follow if it succeeds. So a
hanging Redis costs a process one timeout per second, and a recovered Redis is used again within a
second.
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
UNAVAILABLE = "Redis is unavailable. The API continues without it: %s"
RECOVERED = "Redis is available again."
BREAKER_OPEN = "Redis failed less than a second ago. No command is sent to it."


class BreakerOpenError(RedisConnectionError):
    """The breaker is open."""


class _ThreadState(threading.local):
    failures = 0


class Breaker:
    """Circuit breaker. Closed: every command passes. Open: one command passes per pause."""

    def __init__(self, pause: float = PAUSE_SECONDS) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self._next_try: float | None = None

    def enter(self) -> None:
        """Let a command pass.

        Raises:
            BreakerOpenError: the breaker is open, and the pause is not over.
        """
        if self._next_try is None:
            return
        with self._lock:
            now = time.monotonic()
            if self._next_try is not None and now < self._next_try:
                raise BreakerOpenError(BREAKER_OPEN)
            self._next_try = now + self._pause

    def record_failure(self, error: Exception) -> None:
        """Open the breaker, or keep it open for another pause."""
        with self._lock:
            if self._next_try is None:
                logger.warning(UNAVAILABLE, error)
            self._next_try = time.monotonic() + self._pause

    def record_success(self) -> None:
        """Close the breaker."""
        if self._next_try is None:
            return
        with self._lock:
            was_open, self._next_try = self._next_try is not None, None
        if was_open:
            logger.warning(RECOVERED)


_breaker = Breaker()
_thread = _ThreadState()


def thread_failures() -> int:
    """Return the number of failed commands of this thread, since django-redis hides the errors."""
    return _thread.failures


class GuardedRedis(Redis):
    """redis-py's client behind the breaker, for django-redis and for our own commands."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        try:
            _breaker.enter()
            reply = super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except (RedisConnectionError, RedisTimeoutError) as error:
            _thread.failures += 1
            if not isinstance(error, BreakerOpenError):
                _breaker.record_failure(error)
            raise
        _breaker.record_success()
        return reply
