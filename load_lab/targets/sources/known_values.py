"""Values that are known to the target: what its answers contain, and which of them it accepted."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import islice
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

import httpx

from load_lab.targets.sources.document import Json
from load_lab.targets.sources.exchange import Exchange
from load_lab.targets.sources.paths import (
    Match,
    Templates,
    Values,
    below,
    fill,
    parameter_names,
    prefixes,
    shape,
    shape_above,
    singular,
    words,
)

# Limits for what one answer, or all of them, can add.
_MOST_ITEMS = 500
_MOST_VALUES = 2000
_MOST_LEVELS = 12
_MOST_LINKS = 1000
# A longer text is no value of a parameter.
_MOST_CHARACTERS = 200
# What is an example for bodies: so many of a list, and of a field, none longer.
_MOST_EXAMPLES = 20
_LONGEST_EXAMPLE = 2000
_LARGEST_EXAMPLE = 100

_T = TypeVar("_T")


@dataclass(frozen=True)
class Item:
    """An item of a list. `outer`: values in the path of the list; `fields` by `plain` name. An item
    that is no object has one field "". The first ones have the whole `document`.
    """

    outer: Values
    fields: Mapping[str, str]
    document: Json


class KnownValues:
    """Values for parameters and bodies. `base`: the target's address; those of other hosts are
    ignored.
    """

    def __init__(self, templates: Templates, base: httpx.URL) -> None:
        self._templates = templates
        self._host = base.netloc.decode()
        self._base_path = base.path.rstrip("/")
        self._known: dict[str, dict[Values, None]] = defaultdict(dict)
        self._items: dict[str, list[Item]] = defaultdict(list)
        # By the `plain` name of the field, then by the value as JSON.
        self._fields: dict[str, dict[str, Json]] = defaultdict(dict)
        # Of successful requests, by the name of the parameter.
        self._used: dict[str, dict[str, None]] = defaultdict(dict)
        self._empty = set[str]()

    def learn(self, template: str, values: Values, exchange: Exchange) -> None:
        """Take what a successful answer contains; `values` are those of the request's path."""
        self._learn_values(template, values)
        for name, value in zip(parameter_names(template), values, strict=True):
            _add(self._used[plain(name)], value)
        if exchange.is_page:
            address = self._base_path + fill(template, values)
            for link in _links(exchange.body):
                with suppress(ValueError):
                    self._learn_address(urljoin(address, link))
        else:
            self._learn_document(shape(template), values, parse(exchange.body))

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
        values = (value for each in names for value in self._fields.get(each, {}).values())
        return [text for value in values if (text := _text(value))]

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
        fields = (
            text
            for each in sorted(fitting, key=lambda each: len(lists[each]))
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

    def objects(self, shape: str) -> list[dict[str, Json]]:
        """Return the first objects of the list of this shape, as examples for bodies."""
        documents = (item.document for item in self._items.get(shape, ()))
        return [each for each in documents if isinstance(each, dict)][:_MOST_EXAMPLES]

    def lists(self) -> list[str]:
        """Return the shape of each list."""
        return list(self._items)

    def examples(self, name: str) -> list[Json]:
        """Return different values of the fields that have this name, as examples for bodies."""
        return list(islice(self._fields.get(plain(name), {}).values(), _MOST_EXAMPLES))

    def _learn_document(self, shape: str, values: Values, document: Json) -> None:
        found = _items(document)[:_MOST_ITEMS]
        if not found and _has_list(document):
            self._empty.add(shape)
        items = self._items[shape]
        for each in found:
            fields = dict(_item_fields(each))
            if len(items) < _MOST_VALUES and fields:
                is_example = len(items) < _MOST_EXAMPLES
                items.append(Item(values, fields, each if is_example else None))
        for name, value in _fields(document):
            self._learn_field(plain(name), value)
            self._learn_address(_text(value))

    def _learn_field(self, name: str, value: Json) -> None:
        known = self._fields[name]
        is_large = isinstance(value, list | dict) and len(value) > _LARGEST_EXAMPLE
        most = _MOST_VALUES if _text(value) else _MOST_EXAMPLES
        if name and len(known) < most and not is_large and value not in (None, "", [], {}):
            text = json.dumps(value)
            if len(text) <= _LONGEST_EXAMPLE:
                known[text] = value

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
        return below(self._base_path, address.path) if address.netloc in ("", self._host) else None


def plain(name: str) -> str:
    """Return a name for comparison: `orderId`, `order_id` and `order-id` are one."""
    return "".join(filter(str.isalnum, name)).lower()


def parse(body: bytes) -> Json:
    """Return the JSON of a body; None if it is none."""
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        return None


def _add(values: dict[_T, None], value: _T) -> None:
    if len(values) < _MOST_VALUES:
        values[value] = None


def _items(document: Json, levels: int = 2) -> list[Json]:
    """Return the longest list in the document, nearest to its top: `{"results": […]}`."""
    if isinstance(document, list):
        return document
    if not isinstance(document, dict) or not levels:
        return []
    lists = [value for value in document.values() if isinstance(value, list) and value]
    lists = lists or [_items(value, levels - 1) for value in document.values()]
    return max(lists, key=len, default=[])


def _has_list(document: Json) -> bool:
    values = document.values() if isinstance(document, dict) else [document]
    return any(isinstance(value, list) for value in values)


def _item_fields(item: Json) -> Iterator[tuple[str, str]]:
    """Yield the fields of an item that can be values, then those of its objects, with both names:
    `execution.workflowId`.
    """
    members = item if isinstance(item, dict) else {"": item}
    inner = (
        (f"{name}{inner}", each)
        for name, value in members.items()
        for inner, each in (value.items() if isinstance(value, dict) else ())
    )
    for name, value in (*members.items(), *inner):
        if text := _text(value):
            yield plain(name), text


def _fields(node: Json, name: str = "", levels: int = _MOST_LEVELS) -> Iterator[tuple[str, Json]]:
    """Yield every value in a document with the name of its field; that of a list, for its items."""
    yield name, node
    if isinstance(node, dict) and levels:
        for key, value in node.items():
            yield from _fields(value, key, levels - 1)
    elif isinstance(node, list) and levels:
        for value in node[:_MOST_ITEMS]:
            yield from _fields(value, name, levels - 1)


def _text(value: Json) -> str:
    """Return a value as a path can have it; "" if it cannot."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = str(value)
    return text if text.isprintable() and len(text) <= _MOST_CHARACTERS else ""


def _links(page: bytes) -> list[str]:
    """Return the addresses of links, and of forms that send a GET, as the page has them."""
    parser = _Links()
    # What it can't read ends it: links before that stay.
    with suppress(AssertionError):
        parser.feed(page.decode(errors="replace"))
    return parser.found[:_MOST_LINKS]


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        sends_get = (values.get("method") or "get").lower() == "get"
        link = values.get("href") if tag == "a" else values.get("action") if tag == "form" else None
        if link and (tag == "a" or sends_get):
            self.found.append(link)
