"""Counts and times every request, by route: never by path, which would make a series per hotel."""

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from ops import metrics, pool_waits

# Clients may invent methods; each would be a series of its own.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestMetrics:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        with metrics.IN_FLIGHT.track_inprogress():
            response = self._get_response(request)
        route = request.resolver_match.view_name if request.resolver_match else "unknown"
        method = request.method if request.method in _METHODS else "other"
        metrics.DURATION.labels(route, method).observe(time.perf_counter() - started)
        metrics.REQUESTS.labels(route, method, str(response.status_code)).inc()
        pool_waits.count()
        return response
