"""Templates of paths, such as `/orders/{id}/`: which one a path belongs to."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote

from load_lab.targets.mix import Method

_PARAMETER = re.compile(r"\{([^{}]*)\}")
_ANY_SEGMENT = "[^/]+"
_SLASH = re.compile("/")

# What stands for itself in a path, if no template is known: words. The others are values.
_VALUE = re.compile(
    r"[0-9]+"
    # UUIDs, object ids and hashes: a short one without digits is a word.
    r"|(?=[^0-9]*[0-9])[0-9a-fA-F-]{8,}"
    # Slugs, dates and file names with a number: not `v1` or `oauth2`.
    r"|(?=[^0-9]*[0-9])[^/]*[-_.,:@~][^/]*"
    r"|(?=[^0-9]*[0-9])[^/]{20,}"
    r"|[^/]*@[^/]*"
    r"|[^/]{40,}"
)
# Of a file, the extension remains.
_EXTENSION = re.compile(r"(.+?)(\.[A-Za-z][A-Za-z0-9]{0,5})?")


@dataclass(frozen=True)
class Template:
    """A path with parameters in braces; `patterns` has the regular expression of those that have
    one, `name` what the target calls it, and `views` are the names of what answers this method.
    """

    method: Method
    path_template: str
    patterns: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    views: tuple[str, ...] = ()


class Templates:
    """Finds the template of a path. Those with fewer parameters come first, then the order in which
    the target tries them.
    """

    def __init__(self, templates: Iterable[str | Template]) -> None:
        known = {each.path_template: each for each in map(_as_template, templates)}
        self._known = sorted(known.values(), key=lambda each: each.path_template.count("{"))
        # One regular expression for all of them is 30 times slower, for 300 templates.
        self._by_prefix: dict[str, list[tuple[int, re.Pattern[str]]]] = defaultdict(list)
        for rank, each in enumerate(self._known):
            self._by_prefix[_prefix(each.path_template)].append((rank, _regex(each)))
        self.find = lru_cache(maxsize=100_000)(self._find)

    def _find(self, path: str) -> Template | None:
        """Return the template of a path as it was sent, without its query string."""
        decoded = unquote(path)
        prefixes = {decoded, *(decoded[: slash.end()] for slash in _SLASH.finditer(decoded))}
        candidates = [each for prefix in prefixes for each in self._by_prefix.get(prefix, ())]
        ranks = [rank for rank, regex in candidates if regex.fullmatch(decoded)]
        return self._known[min(ranks)] if ranks else None


@lru_cache(maxsize=100_000)
def shape(path: str) -> str:
    """Return the path with `{value}` for each segment that looks like a value.

    A guess, for paths that no template matches: a slug without digits is taken for a word.
    """
    return "/".join(map(_shape, path.split("/")))


def _shape(segment: str) -> str:
    if not (match := _EXTENSION.fullmatch(segment)):
        return segment
    stem, extension = match.groups(default="")
    return "{value}" + extension if _VALUE.fullmatch(unquote(stem)) else segment


def _as_template(template: str | Template) -> Template:
    return Template("GET", template) if isinstance(template, str) else template


def _prefix(template: str) -> str:
    """Return the template up to the last slash before its first parameter."""
    literal, brace, _ = template.partition("{")
    return literal[: literal.rfind("/") + 1] if brace else literal


def _regex(template: Template) -> re.Pattern[str]:
    parts = _PARAMETER.split(template.path_template)
    values = [f"(?:{_pattern(template.patterns.get(name))})" for name in parts[1::2]]
    texts = (re.escape(text) + value for text, value in zip(parts[::2], [*values, ""], strict=True))
    return re.compile("".join(texts))


def _pattern(text: str | None) -> str:
    """Return the regular expression of a parameter; one that cannot stand within another becomes
    any segment.
    """
    anonymous = re.sub(r"\(\?P<\w+>", "(?:", text or _ANY_SEGMENT)
    try:
        re.compile(f"/(?:{anonymous})")
    except (re.error, RecursionError, OverflowError):
        return _ANY_SEGMENT
    return anonymous
