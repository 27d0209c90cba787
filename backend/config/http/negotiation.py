"""Which form an answer has."""

from collections.abc import Iterable
from typing import Any

from rest_framework.exceptions import NotAcceptable
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

_JSON = ("*/*", "application/json")


class ContentNegotiation(DefaultContentNegotiation):
    """DRF's own, but an Accept that can't be read is one that nothing fits, instead of a 500; and
    what nearly everyone asks for is not parsed to learn that the one renderer makes it.
    """

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> Any:
        offered = list(renderers)
        if not format_suffix and _makes_only_json(offered) and _asks_plainly(request):
            return offered[0], offered[0].media_type
        try:
            return super().select_renderer(request, offered, format_suffix)
        except (ValueError, TypeError):
            raise NotAcceptable(available_renderers=offered) from None


def _makes_only_json(renderers: list[BaseRenderer]) -> bool:
    return len(renderers) == 1 and renderers[0].media_type == "application/json"


def _asks_plainly(request: Request) -> bool:
    """Whether its header fits JSON as it stands, and its address, which may hold `format`, says
    nothing else.
    """
    return not request.META.get("QUERY_STRING") and request.META.get("HTTP_ACCEPT", "*/*") in _JSON
