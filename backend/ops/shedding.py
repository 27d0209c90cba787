"""LAB_SHED=on: who waited too long is told so at once, instead of being served too late.

Under more load than the target bears, a queue grows before the server until every answer is late;
work is then spent on clients that have given up. Nginx says when it handed a request over.

A burst, as when many kept pages come due in one moment, is no such queue: it is gone soon, and what
waits in it is answered in time. So the patience goes by whether the queue was empty lately. A
server's start is no queue either: who came before it was ready waited for that. After
K. Nichols and V. Jacobson, "Controlling Queue Delay", ACM Queue 10(5), 2012, and for requests
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

# In a queue that stands; half of the bound of 1 s is left for the answer itself, some for the way.
LONGEST_WAIT_SECONDS = 0.3
# In a burst: some 0.3 s are left for the answer.
BURST_WAIT_SECONDS = 0.7
# Who waited for no longer found no queue; without such a one for so long, the queue stands.
NO_WAIT_SECONDS, STANDING_SECONDS = 0.05, 1.0

# Nginx' $msec.
_START = re.compile(r"\d{1,12}\.\d{3}")


class Queue:
    """What one process knows of the queue before it; `now` is in seconds of a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._empty_at = self._seen_at = now
        self._first_at: float | None = None

    def is_too_long(self, wait: float, now: float) -> bool:
        """Whether who was taken `now`, after so many seconds, is to be refused."""
        if self._first_at is None:
            self._first_at = now
        # Before its first request this process could not have served anyone.
        wait = min(wait, now - self._first_at)
        # Where nobody came for so long, nothing stood.
        if wait <= NO_WAIT_SECONDS or now - self._seen_at > STANDING_SECONDS:
            self._empty_at = now
        self._seen_at = now
        stands = now - self._empty_at > STANDING_SECONDS
        return wait > (LONGEST_WAIT_SECONDS if stands else BURST_WAIT_SECONDS)


_queue = Queue(time.monotonic())


class Shedding:
    """By WSGI and by ASGI, where it takes no thread."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)
            # Django would run what is not awaited in a thread.
            self.process_view = self._process_view_async  # type: ignore[assignment,method-assign]

    def __call__(self, request: HttpRequest) -> Any:
        """The response, or what is awaited for it."""
        return self._get_response(request)

    def process_view(
        self, request: HttpRequest, _view: Any, _args: Any, _kwargs: Any
    ) -> HttpResponse | None:
        """Runs when the route is known, for the metrics, and before anything is done for it."""
        return _refusal(request)

    async def _process_view_async(
        self, request: HttpRequest, _view: Any, _args: Any, _kwargs: Any
    ) -> HttpResponse | None:
        return _refusal(request)


def _refusal(request: HttpRequest) -> HttpResponse | None:
    if settings.LAB.LAB_SHED is Switch.OFF:
        return None
    wait = waited(request)
    if wait is None or not _queue.is_too_long(wait, time.monotonic()):
        return None
    metrics.SHED_REQUESTS.inc()
    return JsonResponse(
        errors.body("overloaded", errors.WAITED_TOO_LONG),
        status=503,
        headers={"Retry-After": str(errors.RETRY_AFTER_SECONDS)},
    )


def waited(request: HttpRequest) -> float | None:
    """Seconds for which the request stood before the server; None when nobody says so.

    They begin when Nginx handed it over. The lab's own delay on that way is no queue.
    """
    start = request.META.get("HTTP_X_REQUEST_START", "")
    return time.time() - float(start) - _on_the_way() if _START.fullmatch(start) else None


def _on_the_way() -> float:
    incoming = settings.LAB.LAB_LATENCY_DIRECTION is Direction.INCOMING
    return settings.LAB.LAB_LATENCY_MS / 1000 if incoming else 0.0
