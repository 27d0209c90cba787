"""A request to the cache layers, and the response if no layer has the page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from observability import metrics
from ops.token import has_lab_token

from hotels.caching import tokens

JSON = "application/json"


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
        """Return the page as the view renders it from Postgres's rows."""
        response = self.view(self.request, **self.ids)
        if hasattr(response, "render"):
            response.render()
        # The lab's own requests are not part of a load.
        if response.status_code == 200 and not has_lab_token(self.request):
            metrics.BODY_BUILDS.labels(self.route).inc()
        return response

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
