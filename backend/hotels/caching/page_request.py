"""A request to the cache layers, and the response if no layer has the page."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from config.http import errors
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from observability import metrics
from ops.deadline import BuildTimes
from ops.token import has_lab_token

from hotels.caching import tokens

JSON = "application/json"
# Set by Nginx when it fetches a page for its cache.
_FETCH_START = "HTTP_X_FETCH_START"

_build_times = BuildTimes()


class UncacheableError(Exception):
    """The view's response is only for this request and must not be cached."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status_code)
        self.response = response


@dataclass(frozen=True)
class PageRequest:
    """One GET or HEAD request for a page that can be cached."""

    request: HttpRequest
    route: str
    view: Callable[..., HttpResponse]
    read_version: Callable[..., str | None]
    ids: dict[str, Any]

    @property
    def address(self) -> str:
        """The page's name in a cache key: its route and the ids in its path, without the query
        string.
        """
        return ":".join([self.route, *map(str, self.ids.values())])

    def version(self) -> str | None:
        """Return the page's version, with one query, or None if there is no such page.

        Read it before the page: then the page is at least as new as its version.
        """
        return self.read_version(**self.ids)

    def build(self) -> HttpResponse:
        """Return the page as the view renders it from Postgres's rows, or a rejection if Nginx
        would not wait for it.
        """
        start = self.request.META.get(_FETCH_START, "")
        if _build_times.is_too_late(self.route, start, time.time()):
            return self.reject()
        with _build_times.measure(self.route):
            response = self.view(self.request, **self.ids)
            if hasattr(response, "render"):
                response.render()
        # The lab's own requests are not part of a load.
        if response.status_code == 200 and not has_lab_token(self.request):
            metrics.BODY_BUILDS.labels(self.route).inc()
        return response

    def reject(self) -> HttpResponse:
        """Return 503, because the page can't be built in time.

        Nginx's queue gets a 529 and returns the 503 itself: it shares rejections by their status,
        and an unavailable database is a 503, too.
        """
        metrics.SHED_REQUESTS.inc()
        return JsonResponse(
            errors.body("overloaded", errors.OVERLOADED),
            status=529 if _FETCH_START in self.request.META else 503,
            headers={"Retry-After": str(errors.RETRY_AFTER_SECONDS)},
        )

    def count(self, layer: str, outcome: str) -> None:
        """Count the outcome, once per request and layer."""
        metrics.CACHE_ANSWERS.labels(layer, outcome).inc()


def answer_uncached(page_request: PageRequest) -> HttpResponse:
    """Return the page from the view with its ETag, or 304 if the client has that version.

    Stock Django reads no version, so it has neither.
    """
    version = None if settings.LAB.is_stock else page_request.version()
    if version is None:
        return page_request.build()
    tag = tokens.etag(version)
    if tokens.is_known(page_request.request, tag):
        return tokens.not_modified(tag)
    response = page_request.build()
    if response.status_code == 200:
        response["ETag"] = tag
    return response
