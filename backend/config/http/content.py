"""Content: how bodies are read and written, and which form an answer has."""

from collections.abc import Iterable
from typing import Any

from rest_framework.exceptions import NotAcceptable, ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

_JSON = ("*/*", "application/json")


class ContentNegotiation(DefaultContentNegotiation):
    """DRF's own, but an Accept that can't be read is one that nothing fits, instead of a 500."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> Any:
        offered = list(renderers)
        try:
            return super().select_renderer(request, offered, format_suffix)
        except (ValueError, TypeError):
            raise NotAcceptable(available_renderers=offered) from None


class QuickNegotiation(ContentNegotiation):
    """What nearly everyone asks for is not parsed to learn that the one renderer makes it."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> Any:
        offered = list(renderers)
        if not format_suffix and _makes_only_json(offered) and _asks_plainly(request):
            return offered[0], offered[0].media_type
        return super().select_renderer(request, offered, format_suffix)


def _makes_only_json(renderers: list[BaseRenderer]) -> bool:
    return len(renderers) == 1 and renderers[0].media_type == "application/json"


def _asks_plainly(request: Request) -> bool:
    """Whether its header fits JSON as it stands, and its address, which may hold `format`, says
    nothing else.
    """
    return not request.META.get("QUERY_STRING") and request.META.get("HTTP_ACCEPT", "*/*") in _JSON


TOO_DEEP = "JSON parse error - nested too deeply"


class BoundedJSONParser(JSONParser):
    """DRF's own, but a body of brackets is wrong input instead of a RecursionError."""

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().parse(*args, **kwargs)
        except RecursionError:
            raise ParseError(TOO_DEEP) from None


class OneFormJSONRenderer(JSONRenderer):
    """DRF's own, without the indentation that `Accept: application/json; indent=4` asks for: what
    is kept for everyone must not depend on who asked first.
    """

    def get_indent(self, *_args: Any) -> None:
        return None
