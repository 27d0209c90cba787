"""What the answers of a target contain: addresses, items of lists, and fields by their name."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from load_lab.targets.sources.json_or_yaml import Json
from load_lab.targets.sources.placeholders import Shapes, prefixes, shape, shape_above
from load_lab.targets.sources.samples import Samples

# Limits for what one answer, or all of them, can add.
_MOST_ITEMS = 500
_MOST_VALUES = 2000
_MOST_LEVELS = 12
# A longer text is no value of a parameter.
_MOST_CHARACTERS = 200

_T = TypeVar("_T")
Values = tuple[str, ...]


@dataclass(frozen=True)
class Item:
    """An item of a list. `outer`: values in the path of the list; `fields` by `plain` name. An item
    that is no object has one field "".
    """

    outer: Values
    fields: Mapping[str, str]


class Answers:
    """Values for parameters. `base`: the target's address; those of other hosts are ignored."""

    def __init__(self, templates: Shapes, base: httpx.URL) -> None:
        self.samples = Samples()
        self._templates = templates
        self._host = base.netloc.decode()
        self._base_path = base.path.rstrip("/")
        self._known: dict[str, dict[Values, None]] = defaultdict(dict)
        self._items: dict[str, list[Item]] = defaultdict(list)
        self._fields: dict[str, dict[str, None]] = defaultdict(dict)

    def learn(self, template: str, values: Values, body: bytes) -> None:
        """Take what a successful answer contains; `values` are those of the request's path."""
        self._learn_values(template, values)
        document = parse(body)
        found = _items(document)[:_MOST_ITEMS]
        self.samples.learn(shape(template), found, document)
        items = self._items[shape(template)]
        for each in found:
            fields = dict(_fields(each))
            if len(items) < _MOST_VALUES and fields:
                items.append(Item(values, fields))
        for name, text in _leaves(document):
            _add(self._fields[plain(name)], text)
            self._learn_address(text)

    def known(self, template: str, count: int) -> list[Values]:
        """Return values of the first `count` placeholders, from addresses in answers and successful
        requests that begin like the template.
        """
        return list(self._known.get(prefixes(template)[count - 1], ())) if count else [()]

    def items_above(self, template: str) -> list[Item]:
        """Return the items of the list above the template: `/orders/` for `/orders/{id}/`."""
        return self._items.get(shape_above(template), [])

    def fields(self, name: str) -> list[str]:
        """Return the values of fields that have this name, in any answer."""
        return list(self._fields.get(plain(name), ()))

    def match(self, address: str) -> tuple[str, Values] | None:
        """Return the shape and the values of an address on the target."""
        path = self._path(address)
        return self._templates.match(path) if path else None

    def _learn_values(self, template: str, values: Values) -> None:
        for i, prefix in enumerate(prefixes(template), start=1):
            _add(self._known[prefix], values[:i])

    def _learn_address(self, text: str) -> None:
        if match := self.match(text):
            self._learn_values(*match)

    def _path(self, text: str) -> str | None:
        """Return the path of an address on the target, below its base path; None for other texts
        and other hosts.
        """
        if not text.startswith(("/", "http://", "https://")):
            return None
        try:
            address = urlsplit(text)
        except ValueError:
            return None
        is_own = address.netloc in ("", self._host) and address.path.startswith(self._base_path)
        return address.path.removeprefix(self._base_path) if is_own else None


def plain(name: str) -> str:
    """Return a name for comparison: `orderId`, `order_id` and `order-id` are one."""
    return "".join(filter(str.isalnum, name)).lower()


def _add(values: dict[_T, None], value: _T) -> None:
    if len(values) < _MOST_VALUES:
        values[value] = None


def parse(body: bytes) -> Json:
    """Return the JSON of a body; None if it is none."""
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return None


def _items(document: Any, levels: int = 2) -> list[Any]:
    """Return the longest list in the document, nearest to its top: `{"results": […]}`."""
    if isinstance(document, list):
        return document
    if not isinstance(document, dict) or not levels:
        return []
    lists = [value for value in document.values() if isinstance(value, list) and value]
    lists = lists or [_items(value, levels - 1) for value in document.values()]
    return max(lists, key=len, default=[])


def _fields(item: Any) -> Iterator[tuple[str, str]]:
    """Yield the fields of an item that can be values."""
    members = item.items() if isinstance(item, dict) else [("", item)]
    for name, value in members:
        if text := _text(value):
            yield plain(name), text


def _leaves(node: Any, name: str = "", levels: int = _MOST_LEVELS) -> Iterator[tuple[str, str]]:
    """Yield the values in a document with the name of their field."""
    if isinstance(node, dict) and levels:
        for key, value in node.items():
            yield from _leaves(value, key, levels - 1)
    elif isinstance(node, list) and levels:
        for value in node[:_MOST_ITEMS]:
            yield from _leaves(value, name, levels - 1)
    elif text := _text(node):
        yield name, text


def _text(value: Any) -> str:
    """Return a value as a path can have it; "" if it cannot."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = str(value)
    return text if text.isprintable() and len(text) <= _MOST_CHARACTERS else ""
