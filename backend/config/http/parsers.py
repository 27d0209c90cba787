"""How bodies are read."""

from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

TOO_DEEP = "JSON parse error - nested too deeply"


class BoundedJSONParser(JSONParser):
    """DRF's own, but a body of brackets is wrong input instead of a RecursionError."""

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().parse(*args, **kwargs)
        except RecursionError:
            raise ParseError(TOO_DEEP) from None
