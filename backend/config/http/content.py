"""Content negotiation, JSON parser and JSON renderer."""

from collections.abc import Iterable
from typing import Any

from rest_framework.exceptions import NotAcceptable, ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

_JSON = ("*/*", "application/json")


class ContentNegotiation(DefaultContentNegotiation):
    """DRF's content negotiation, but an invalid Accept header is a 406 instead of a 500."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> Any:
        available = list(renderers)
        try:
            return super().select_renderer(request, available, format_suffix)
        except (ValueError, TypeError):
            raise NotAcceptable(available_renderers=available) from None


class FastNegotiation(ContentNegotiation):
    """Skip the parsing of common Accept headers if JSON is the only renderer."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> Any:
        available = list(renderers)
        if not format_suffix and _is_json_only(available) and _is_plain_request(request):
            return available[0], available[0].media_type
        return super().select_renderer(request, available, format_suffix)


def _is_json_only(renderers: list[BaseRenderer]) -> bool:
    return len(renderers) == 1 and renderers[0].media_type == "application/json"


def _is_plain_request(request: Request) -> bool:
    """Return whether Accept is missing, `*/*` or `application/json`, without a query string.

    A query string can contain `format`.
    """
    return not request.META.get("QUERY_STRING") and request.META.get("HTTP_ACCEPT", "*/*") in _JSON


TOO_DEEP = "JSON parse error - nested too deeply"


class BoundedJSONParser(JSONParser):
    """DRF's JSON parser, but a body nested too deeply is a 400 instead of a RecursionError."""

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().parse(*args, **kwargs)
        except RecursionError:
            raise ParseError(TOO_DEEP) from None


class CompactJSONRenderer(JSONRenderer):
    """DRF's JSON renderer without indentation (`Accept: application/json; indent=4`).

    A cached body must not depend on the Accept header of the first client.
    """

    def get_indent(self, *_args: Any) -> None:
        return None
