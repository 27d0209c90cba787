"""Count and time every request by route. By path there would be a time series per hotel.

Three metrics only: a general exporter writes about ten per request, which a response of one
millisecond would show.
"""

import time
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from config.server import caller
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ops.token import has_lab_token

from observability import metrics, pool_waits

# Clients can invent methods; each would be a separate time series.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestMetrics:
    """Middleware for WSGI and for ASGI, where it needs no thread."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)
        metrics.register_worker()

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self._is_async:
            return self._answer_async(request)
        start = time.perf_counter()
        with metrics.IN_FLIGHT.track_inprogress():
            response = self._get_response(request)
        return _record(request, response, start)

    async def _answer_async(self, request: HttpRequest) -> HttpResponseBase:
        start = time.perf_counter()
        # A client that disconnects ends the request here too.
        with metrics.IN_FLIGHT.track_inprogress():
            response = await self._get_response(request)  # type: ignore[misc]
        return _record(request, response, start)


def _record(request: HttpRequest, response: HttpResponseBase, start: float) -> HttpResponseBase:
    route = request.resolver_match.view_name if request.resolver_match else "unknown"
    method = request.method if request.method in _METHODS else "other"
    metrics.DURATION.labels(route, method).observe(time.perf_counter() - start)
    metrics.REQUESTS.labels(route, method, str(response.status_code)).inc()
    pool_waits.count()
    if has_lab_token(request):
        # Verifies which server responded. Only for the lab.
        response["X-Lab-Server"] = caller.server() or "unknown"
        # Otherwise Nginx would cache it and send it to all clients (LAB_NGINX_CACHE=basic).
        response["X-Accel-Expires"] = "0"
    return response
