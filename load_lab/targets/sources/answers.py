"""What the answers of a target contain: addresses, items of lists, and fields by their name."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx

from load_lab.targets.sources.exchange import Exchange
from load_lab.targets.sources.json_or_yaml import Json
from load_lab.targets.sources.pages import links
from load_lab.targets.sources.paths import (
    Match,
    Templates,
    Values,
    fill,
    parameter_names,
    prefixes,
    shape,
    shape_above,
    singular,
    words,
)
from load_lab.targets.sources.samples import Samples

# Limits for what one answer, or all of them, can add.
_MOST_ITEMS = 500
_MOST_VALUES = 2000
_MOST_LEVELS = 12
# A longer text is no value of a parameter.
_MOST_CHARACTERS = 200

_T = TypeVar("_T")


@dataclass(frozen=True)
class Item:
    """An item of a list. `outer`: values in the path of the list; `fields` by `plain` name. An item
    that is no object has one field "".
    """

    outer: Values
    fields: Mapping[str, str]


class Answers:
    """Values for parameters. `base`: the target's address; those of other hosts are ignored."""

    def __init__(self, templates: Templates, base: httpx.URL) -> None:
        self.samples = Samples()
        self._templates = templates
        self._host = base.netloc.decode()
        self._base_path = base.path.rstrip("/")
        self._known: dict[str, dict[Values, None]] = defaultdict(dict)
        self._items: dict[str, list[Item]] = defaultdict(list)
        self._fields: dict[str, dict[str, None]] = defaultdict(dict)
        # Of successful requests, by the name of the parameter.
        self._used: dict[str, dict[str, None]] = defaultdict(dict)
        self._empty = set[str]()

    def learn(self, template: str, values: Values, exchange: Exchange) -> None:
        """Take what a successful answer contains; `values` are those of the request's path."""
        self._learn_values(template, values)
        for name, value in zip(parameter_names(template), values, strict=True):
            _add(self._used[plain(name)], value)
        if exchange.is_page:
            for link in links(exchange.body):
                with suppress(ValueError):
                    self._learn_address(urljoin(self._base_path + fill(template, values), link))
            return
        body = exchange.body
        document = parse(body)
        found = _items(document)[:_MOST_ITEMS]
        if not found and _has_list(document):
            self._empty.add(shape(template))
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

    def is_empty(self, template: str) -> bool:
        """Return whether the list above the template was answered, and has no items."""
        return shape_above(template) in self._empty and not self.items_above(template)

    def fields(self, name: str) -> list[str]:
        """Return the values of fields that have this name, or that of its last part, in any
        answer.
        """
        names = dict.fromkeys((plain(name), plain(name.rpartition(".")[2])))
        return [value for each in names for value in self._fields.get(each, ())]

    def used(self, name: str) -> list[str]:
        """Return the values of parameters of this name, in any path that was answered with 2xx."""
        return list(self._used.get(plain(name), ()))

    def addresses(self, name: str) -> list[str]:
        """Return the addresses that a parameter may be, which is a whole one: `order_href` is the
        field `…_href` of the items of the list whose path has the word `orders`.
        """
        *subject, kind = words(name) or [""]
        lists = {each: set(map(singular, words(each))) for each in self._items}
        subject_words = set(map(singular, subject))
        fitting = [each for each, found in lists.items() if subject_words <= found]
        ordered = sorted(fitting, key=lambda each: len(lists[each]))
        fields = (
            text
            for each in ordered
            for item in self._items[each]
            for field, text in item.fields.items()
            # Of the item itself: other fields may have addresses, too.
            if kind and field.endswith(kind) and (self._path(text) or "").startswith(f"{each}/")
        )
        paths = map(self._path, (*self.fields(name), *fields))
        return list(dict.fromkeys(path for path in paths if path and path.startswith("/")))

    def match(self, address: str) -> Match | None:
        """Return the template and the values of an address on the target."""
        path = self._path(address)
        return self._templates.match(path) if path else None

    def _learn_values(self, template: str, values: Values) -> None:
        for i, prefix in enumerate(prefixes(template), start=1):
            _add(self._known[prefix], values[:i])

    def _learn_address(self, text: str) -> None:
        if match := self.match(text):
            self._learn_values(match.template.path_template, match.values)

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
        is_below = f"{address.path}/".startswith(f"{self._base_path}/")
        is_own = address.netloc in ("", self._host) and is_below
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


def _has_list(document: Any) -> bool:
    values = document.values() if isinstance(document, dict) else [document]
    return any(isinstance(value, list) for value in values)


def _fields(item: Any) -> Iterator[tuple[str, str]]:
    """Yield the fields of an item that can be values, then those of its objects, with both names:
    `execution.workflowId`.
    """
    members = item if isinstance(item, dict) else {"": item}
    for name, value in members.items():
        if text := _text(value):
            yield plain(name), text
    for name, value in members.items():
        for inner, each in value.items() if isinstance(value, dict) else ():
            if text := _text(each):
                yield plain(f"{name}{inner}"), text


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
