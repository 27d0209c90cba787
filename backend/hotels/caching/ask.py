"""What a layer is asked, and how a page is made when no layer has it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from observability import metrics
from ops.token import has_lab_token

from hotels.caching import tokens

JSON = "application/json"


class NotKeptError(Exception):
    """The view answered something that only this request shall see."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status_code)
        self.response = response


@dataclass(frozen=True)
class Ask:
    """One GET or HEAD of a page that may be kept."""

    request: HttpRequest
    route: str
    view: Callable[..., HttpResponse]
    read_version: Callable[..., str | None]
    ids: dict[str, Any]

    @property
    def address(self) -> str:
        """The page's name in a key: its route and the ids in its path, nothing of the query."""
        return ":".join([self.route, *map(str, self.ids.values())])

    def version(self) -> str | None:
        """The page's version, by one query. To be read before the page: then the page holds at
        least what the version promises. None when there is no such page.
        """
        return self.read_version(**self.ids)

    def build(self) -> HttpResponse:
        """The page from Postgres's rows, as the view answers it."""
        response = self.view(self.request, **self.ids)
        if hasattr(response, "render"):
            response.render()
        # The lab's own reads are no part of a load.
        if response.status_code == 200 and not has_lab_token(self.request):
            metrics.BODY_BUILDS.labels(self.route).inc()
        return response

    def count(self, layer: str, outcome: str) -> None:
        """One per request and layer that was asked."""
        metrics.CACHE_ANSWERS.labels(layer, outcome).inc()


def answered(ask: Ask) -> HttpResponse:
    """The page as the view makes it: with its ETag, or 304 for who has it already. Stock Django
    looks for no version, so has neither.
    """
    version = None if settings.LAB.is_stock else ask.version()
    if version is None:
        return ask.build()
    tag = tokens.etag(version)
    if tokens.is_known(ask.request, tag):
        return tokens.not_modified(tag)
    response = ask.build()
    if response.status_code == 200:
        response["ETag"] = tag
    return response
