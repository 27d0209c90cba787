"""Which form an answer has."""

from collections.abc import Iterable
from typing import Any

from rest_framework.exceptions import NotAcceptable
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class ContentNegotiation(DefaultContentNegotiation):
    """DRF's own, but an Accept that can't be read is one that nothing fits, instead of a 500."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> Any:
        try:
            return super().select_renderer(request, renderers, format_suffix)
        except (ValueError, TypeError):
            raise NotAcceptable(available_renderers=list(renderers)) from None
