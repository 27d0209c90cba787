"""LAB_SHED=on: reject requests that have waited too long at once, instead of responding too late.

With more load than capacity, a queue grows in front of the server until every response is late;
work then goes to clients that have given up. Nginx sends the time at which it forwarded a request.

A burst, such as many cached pages that expire at the same moment, is not such a queue: it ends
soon, and its responses are in time. So the maximum wait depends on whether the queue was empty
recently. The start of a server is not a queue either: requests that arrived before it was ready
waited for the start.

After K. Nichols and V. Jacobson, "Controlling Queue Delay", ACM Queue 10(5), 2012, and for requests
B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015.
"""

import re
import time
from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from config.http import errors
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from lab_settings.kinds import Direction, Switch
from observability import metrics

# In a standing queue. Half of the SLO of 1 s remains for the response itself, and some for the
# transfer.
MAX_WAIT_SECONDS = 0.3
# In a burst: about 0.3 s remain for the response.
BURST_WAIT_SECONDS = 0.7
# A request that waited at most NO_WAIT_SECONDS found no queue. STANDING_SECONDS without such a
# request: a standing queue.
NO_WAIT_SECONDS, STANDING_SECONDS = 0.05, 1.0

# Nginx's $msec.
_START = re.compile(r"\d{1,12}\.\d{3}")


class Queue:
    """The queue in front of one process; `now` is in seconds of a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._empty_at = self._last_at = now
        self._first_at: float | None = None

    def is_too_long(self, wait: float, now: float) -> bool:
        """Return whether to reject a request that arrives at `now` after `wait` seconds."""
        if self._first_at is None:
            self._first_at = now
        # Before its first request this process could not serve any.
        wait = min(wait, now - self._first_at)
        # If no request arrived for so long, there was no queue.
        if wait <= NO_WAIT_SECONDS or now - self._last_at > STANDING_SECONDS:
            self._empty_at = now
        self._last_at = now
        is_standing = now - self._empty_at > STANDING_SECONDS
        return wait > (MAX_WAIT_SECONDS if is_standing else BURST_WAIT_SECONDS)


_queue = Queue(time.monotonic())


class Shedding:
    """Middleware for WSGI and for ASGI, where it needs no thread."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)
            # Django would run a synchronous method in a thread.
            self.process_view = self._process_view_async  # type: ignore[assignment,method-assign]

    def __call__(self, request: HttpRequest) -> Any:
        """Return the response, or an awaitable of it."""
        return self._get_response(request)

    def process_view(
        self, request: HttpRequest, _view: Any, _args: Any, _kwargs: Any
    ) -> HttpResponse | None:
        """Reject the request, or return None. The route is known here, for the metrics.

        Runs before the view.
        """
        return _rejection(request)

    async def _process_view_async(
        self, request: HttpRequest, _view: Any, _args: Any, _kwargs: Any
    ) -> HttpResponse | None:
        return _rejection(request)


def _rejection(request: HttpRequest) -> HttpResponse | None:
    if settings.LAB.LAB_SHED is Switch.OFF:
        return None
    wait = wait_seconds(request)
    if wait is None or not _queue.is_too_long(wait, time.monotonic()):
        return None
    metrics.SHED_REQUESTS.inc()
    return JsonResponse(
        errors.body("overloaded", errors.OVERLOADED),
        status=503,
        headers={"Retry-After": str(errors.RETRY_AFTER_SECONDS)},
    )


def wait_seconds(request: HttpRequest) -> float | None:
    """Return the seconds since Nginx forwarded the request, or None if Nginx did not.

    The lab's own delay between the two is not a queue, so it does not count.
    """
    start = request.META.get("HTTP_X_REQUEST_START", "")
    return time.time() - float(start) - _incoming_delay() if _START.fullmatch(start) else None


def _incoming_delay() -> float:
    incoming = settings.LAB.LAB_LATENCY_DIRECTION is Direction.INCOMING
    return settings.LAB.LAB_LATENCY_MS / 1000 if incoming else 0.0
