"""LAB_SHED=on: who waited too long is told so at once, instead of being served too late.

Under more load than the target bears, a queue grows before the server until every answer is late;
work is then spent on clients that have given up. Nginx says when it took a request in.
"""

import re
import time
from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from config import errors
from config.kinds import Switch
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from ops import metrics

# Half of the bound of 1 s is left for the answer itself, and some for the way.
LONGEST_WAIT_SECONDS = 0.3

# Nginx' $msec.
_START = re.compile(r"\d{1,12}\.\d{3}")


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
    if settings.LAB.lab_shed is Switch.OFF or waited(request) <= LONGEST_WAIT_SECONDS:
        return None
    metrics.SHED_REQUESTS.inc()
    return JsonResponse(
        errors.body("overloaded", errors.WAITED_TOO_LONG),
        status=503,
        headers={"Retry-After": str(errors.RETRY_AFTER_SECONDS)},
    )


def waited(request: HttpRequest) -> float:
    """Seconds since Nginx took the request in; 0 when nobody says so."""
    start = request.META.get("HTTP_X_REQUEST_START", "")
    return time.time() - float(start) if _START.fullmatch(start) else 0.0
