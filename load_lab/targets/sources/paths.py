"""Paths, and their templates: `/orders/7/` belongs to `/orders/{id}/`."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import quote, unquote

from load_lab.targets.mix import Method

Values = tuple[str, ...]

_PARAMETER = re.compile(r"\{([^{}]*)\}")
_ANY_SEGMENT = "[^/]+"
_SLASH = re.compile("/")
# An expression that is one group, and an alternative that stands for itself.
_GROUP = re.compile(r"\A\((?:\?:|\?P<\w+>)?([^()]*)\)\Z")
_LITERAL = re.compile(r"(?:[\w-]|\\[^\w])+", re.ASCII)
_FORMATS = ("json", ".json")
# A slash in a value, which separates nothing.
_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)

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

    @property
    def shape(self) -> str:
        return shape(self.path_template)

    def fits(self, values: Values) -> bool:
        """Return whether each value matches the regular expression of its parameter."""
        names = parameter_names(self.path_template)
        patterns = (_pattern(self.patterns.get(name) or ".+") for name in names)
        return all(map(re.fullmatch, patterns, values))

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of a parameter whose regular expression lists them: `en|de`; and those
        of a suffix for the format.
        """
        pattern = self.patterns.get(name, "")
        fitting = [text for text in _FORMATS if re.fullmatch(_pattern(pattern), text)]
        if name == "format" and fitting:
            return (fitting[0],)
        texts = _GROUP.sub(r"\1", pattern).split("|")
        return tuple(re.sub(r"\\(.)", r"\1", text) for text in texts if _LITERAL.fullmatch(text))


def below(base_path: str, path: str) -> str | None:
    """Return what follows the path of the target's address, which each request of a load has; None
    if nothing does.
    """
    is_below = f"{path}/".startswith(f"{base_path}/")
    return (path.removeprefix(base_path) or "/") if is_below else None


def parameter_names(template: str) -> tuple[str, ...]:
    """Return the names of the parameters, in their order."""
    return tuple(_PARAMETER.findall(template))


def words(name: str) -> list[str]:
    """Return the words of a name or path, in lower case: `orderId`, `order_id` have two."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def singular(word: str) -> str:
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def fill(template: str, values: Sequence[str]) -> str:
    """Return the path that has these values, percent-encoded, in place of the parameters. The first
    parameter of a template that begins with it is a whole address.
    """
    texts = iter(values)

    def value(match: re.Match[str]) -> str:
        return next(texts) if match.start() == 0 else quote(next(texts), safe="")

    return _PARAMETER.sub(value, template)


def shape(template: str) -> str:
    """Return the template without names and final slash: `/api/orders/{}`. Templates of one
    shape have the same paths.
    """
    return _PARAMETER.sub("{}", template).rstrip("/")


def shape_above(template: str) -> str:
    """Return the shape of what stands before the last parameter: `/api/orders`."""
    return shape(template).rpartition("{}")[0].rstrip("/")


def prefixes(template: str) -> tuple[str, ...]:
    """Return the shapes that end with each parameter: `/orders/{}`, `/orders/{}/item/{}`."""
    parts = shape(template).split("{}")
    return tuple("{}".join(parts[:i]) + "{}" for i in range(1, len(parts)))


class Match(NamedTuple):
    """The template of a path, and the values of its parameters."""

    template: Template
    values: Values


class Templates:
    """Finds the template of a path. Those with fewer parameters come first, then the order in which
    the target tries them; of equal ones, the first is known.
    """

    def __init__(self, templates: Iterable[str | Template]) -> None:
        known: dict[tuple[object, ...], Template] = {}
        for each in map(_as_template, templates):
            known.setdefault((each.path_template, *sorted(each.patterns.items())), each)
        self._known = sorted(known.values(), key=lambda each: each.path_template.count("{"))
        # One regular expression for all of them is 30 times slower, for 300 templates.
        self._by_prefix: dict[str, list[tuple[int, re.Pattern[str]]]] = defaultdict(list)
        for rank, each in enumerate(self._known):
            self._by_prefix[_prefix(each.path_template)].append((rank, _regex(each)))
        self.find = lru_cache(maxsize=100_000)(self._find)

    def match(self, path: str) -> Match | None:
        """Like `find`, with or without the slash at the end."""
        return self.find(path) or self.find(f"{path}/") or self.find(path.rstrip("/"))

    def _find(self, path: str) -> Match | None:
        """Return the template of a path as it was sent, without its query string."""
        decoded = unquote(_ENCODED_SLASH.sub("%252F", path))
        prefixes = {decoded, *(decoded[: slash.end()] for slash in _SLASH.finditer(decoded))}
        candidates = [each for prefix in prefixes for each in self._by_prefix.get(prefix, ())]
        matches = ((rank, regex.fullmatch(decoded)) for rank, regex in candidates)
        found = [(rank, match.groupdict()) for rank, match in matches if match]
        if not found:
            return None
        rank, values = min(found, key=itemgetter(0))
        texts = (value.replace("%2F", "/") for value in values.values())
        return Match(self._known[rank], tuple(texts))


@lru_cache(maxsize=100_000)
def guessed_template(path: str) -> str:
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
    patterns = (_pattern(template.patterns.get(name)) for name in parts[1::2])
    values = [f"(?P<_{i}>{pattern})" for i, pattern in enumerate(patterns)]
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
