"""Path templates: `/api/orders/{id}/`."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from urllib.parse import quote, unquote

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def parameter_names(template: str) -> tuple[str, ...]:
    """Return the names of the placeholders, in their order."""
    return tuple(_PLACEHOLDER.findall(template))


def fill(template: str, values: Sequence[str]) -> str:
    """Return the path that has these values, percent-encoded, in place of the placeholders."""
    texts = iter(values)
    return _PLACEHOLDER.sub(lambda _: quote(next(texts), safe=""), template)


def shape(template: str) -> str:
    """Return the template without names and final slash: `/api/orders/{}`. Templates of one
    shape have the same paths.
    """
    return _PLACEHOLDER.sub("{}", template).rstrip("/")


def shape_above(template: str) -> str:
    """Return the shape of what stands before the last placeholder: `/api/orders`."""
    return shape(template).rpartition("{}")[0].rstrip("/")


def prefixes(template: str) -> tuple[str, ...]:
    """Return the shapes that end with each placeholder: `/orders/{}`, `/orders/{}/item/{}`."""
    parts = shape(template).split("{}")
    return tuple("{}".join(parts[:i]) + "{}" for i in range(1, len(parts)))


class Shapes:
    """The templates of an API."""

    def __init__(self, templates: Iterable[str]) -> None:
        self._by_depth: dict[int, list[tuple[re.Pattern[str], str]]] = defaultdict(list)
        # `/users/me` comes before `/users/{}`, which it fits too.
        for each in sorted(set(map(shape, templates)), key=lambda s: (s.count("{}"), -len(s), s)):
            pattern = "([^/]+)".join(map(re.escape, each.split("{}")))
            self._by_depth[_depth(each)].append((re.compile(pattern), each))

    def match(self, path: str) -> tuple[str, tuple[str, ...]] | None:
        """Return the shape of a path's template, and the values of the placeholders."""
        path = path.rstrip("/")
        for pattern, each in self._by_depth.get(_depth(path), ()):
            if match := pattern.fullmatch(path):
                return each, tuple(map(unquote, match.groups()))
        return None


def _depth(path: str) -> int:
    return path.count("/")
