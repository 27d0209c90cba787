"""How bodies are written."""

from typing import Any

from rest_framework.renderers import JSONRenderer


class OneFormJSONRenderer(JSONRenderer):
    """DRF's own, without the indentation that `Accept: application/json; indent=4` asks for: what
    is kept for everyone must not depend on who asked first.
    """

    def get_indent(self, *_args: Any) -> None:
        return None
