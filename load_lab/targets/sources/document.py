"""A JSON or YAML document: parts of it are read by name, through its references."""

import gc
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, cast
from urllib.parse import unquote, urljoin

import yaml
from lab_settings.messages import shorten

from load_lab.errors import LabError, UsageError

# A larger integer is no value of a parameter, and Python refuses to print it.
_MOST_BITS = 64
_MOST_LEVELS = 500
# Files to which a document refers.
_MOST_FILES = 500

Load = Callable[[str], str]
Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


# Members whose content is data.
_DATA = ("example", "examples", "default", "enum", "const")


class Document:
    """A document, and those to which it refers: `load` returns their text, if they can be had."""

    def __init__(self, content: object, address: str = "", load: Load | None = None) -> None:
        self.content = content
        self._address, self._load = address, load
        self._others: dict[str, Document | None] = {}

    def other(self, name: str) -> "Document | None":
        """Return the document of a relative address; None if it can't be had."""
        # An invalid address, or a file that is not there or not allowed.
        with suppress(ValueError, LabError):
            address = urljoin(self._address, name)
            if address not in self._others and self._load and len(self._others) < _MOST_FILES:
                self._others[address] = None
                content = _parse(self._load(address), address)
                other = Document(content, address, self._load)
                self._others[address] = other
                other._others = self._others
            return self._others.get(address)
        return None


class Node:
    """A part of a document. References are followed; a part that is missing is an empty node, and
    so is one in another file that can't be had, or a reference to itself.
    """

    def __init__(self, value: object, document: Document) -> None:
        self._value, self._document = _follow(value, document)
        # What a reference names that can't be read.
        reference = value.get("$ref") if isinstance(value, dict) else None
        self.unread = str(reference) if reference and self._value is None else ""
        # The same for all nodes of one place in the document.
        self.place = id(value)

    def at(self, key: str) -> "Node":
        value = self._value.get(key) if isinstance(self._value, dict) else None
        # What is data refers to no other file.
        is_data = key in _DATA
        return Node(value, Document(self._document.content) if is_data else self._document)

    def members(self) -> Iterator[tuple[str, "Node"]]:
        """Yield names and values of an object."""
        if isinstance(self._value, dict):
            for key, value in self._value.items():
                if isinstance(key, str):
                    yield key, Node(value, self._document)

    def elements(self) -> Iterator["Node"]:
        """Yield the elements of a list."""
        if isinstance(self._value, list):
            yield from (Node(value, self._document) for value in self._value)

    def text(self) -> str:
        """Return a string, number or boolean as a request has it; "" for anything else."""
        return text_of(self._value)

    def json(self) -> Json:
        """Return the part as it is."""
        try:
            return cast(Json, json.loads(json.dumps(self._value, default=str)))
        # YAML can have a list within itself.
        except (ValueError, RecursionError):
            return None

    @property
    def exists(self) -> bool:
        return self._value is not None

    @property
    def is_object(self) -> bool:
        return isinstance(self._value, dict)

    @property
    def is_true(self) -> bool:
        return self.text().lower() == "true"

    def texts(self) -> list[str]:
        """Return the texts of a list's elements, or of the value itself."""
        nodes = list(self.elements()) or [self]
        return [text for node in nodes if (text := node.text())]


def text_of(value: object) -> str:
    """Return a string, number or boolean as a request has it; "" for anything else."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value) if value.bit_length() <= _MOST_BITS else ""
        case float() | str():
            text = str(value)
            # Only a character that can be sent: JSON can have half of a surrogate pair.
            return text if text.isprintable() else ""
        case _:
            return ""


def parse_document(text: str, source: str, load: Load | None = None) -> Node:
    """Parse a document that is a JSON or YAML object; `source` is its address or file. `load`
    returns the text of another one, to which it refers.

    Raises:
        UsageError: it is empty, a web page, neither JSON nor YAML, or not an object.
    """
    text = text.lstrip("\ufeff \t\r\n")
    if not text:
        raise UsageError(f"{source} is empty. Give the address or file of an OpenAPI document.")
    if text.startswith("<"):
        raise UsageError(
            f"{source} is a web page or XML, not an OpenAPI document. Give the address of the "
            "document, for example /api/schema/ (drf-spectacular) or /api/openapi.json (Ninja)."
        )
    content = _parse(text, source)
    if not isinstance(content, dict):
        raise UsageError(
            f"{source} is no OpenAPI document: it is not an object, but {shorten(content)!r}."
        )
    return Node(content, Document(content, source, load))


def _parse(text: str, source: str) -> object:
    language = "JSON" if text[:1] in "{[" else "YAML"
    try:
        with _collector_paused():
            return json.loads(text) if language == "JSON" else _load_yaml(text)
    # PyYAML lets errors of Python through: a date that does not exist, half of a surrogate pair.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = shorten(" ".join(str(error).split()))
        raise UsageError(
            f"{source} is not valid {language}: {problem}. Give an OpenAPI document."
        ) from None


class _Loader(yaml.CSafeLoader):
    """Takes a scalar without quotes for a number, a boolean or null only if it is written as JSON
    writes it. `NO`, `on`, `12:30`, `010115`, `1.10` and dates keep their text.
    """


_Loader.yaml_implicit_resolvers = {}
for _kind, _regex, _first in (
    ("bool", "true|false", "tf"),
    ("int", "-?(?:0|[1-9][0-9]{0,18})", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]{0,15})\.(?:[0-9]{0,15}[1-9]|0)", "-0123456789"),
    ("null", "~|null|Null|NULL|", ("~", "n", "N", "")),
    ("merge", "<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_regex})\\Z"), list(_first)
    )


def _load_yaml(text: str) -> object:
    """Load YAML with the parser in C: the one in Python takes minutes for a document of 4 MB."""
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        # The parser in C recurses without a limit: a deep document ends the process.
        if depth > _MOST_LEVELS:
            raise ValueError(f"more than {_MOST_LEVELS} levels")
    return yaml.load(text, _Loader)  # noqa: S506 - it constructs what the safe one does


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause Python's garbage collector: it takes two thirds of the time, and has nothing to free
    while a document is parsed.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _follow(value: Any, document: Document) -> tuple[Any, Document]:
    """Return what the value refers to, with the value's other members laid over it, and where it
    stands.
    """
    followed: set[tuple[int, str]] = set()
    while isinstance(value, dict) and isinstance(value.get("$ref"), str):
        name, _, pointer = value["$ref"].partition("#")
        found = document.other(name) if name else document
        if found is None or (id(found), pointer) in followed:
            return None, document
        document = found
        followed.add((id(document), pointer))
        target = _target(pointer, document.content)
        if not isinstance(target, dict):
            return target, document
        value = target | {key: each for key, each in value.items() if key != "$ref"}
    return value, document


def _target(pointer: str, root: Any) -> object:
    """Return the value that a JSON pointer names (RFC 6901); None if there is none."""
    for part in unquote(pointer).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(root, Mapping):
            root = root.get(key)
        elif isinstance(root, list) and key.isdecimal() and int(key) < len(root):
            root = root[int(key)]
        else:
            return None
    return root
