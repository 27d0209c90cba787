"""A JSON or YAML document: parts of it are read by name, through its references."""

import datetime
import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

import yaml
from lab_settings.messages import shorten

from load_lab.errors import UsageError

# A larger integer is no value of a parameter, and Python refuses to print it.
_MOST_BITS = 64
_MOST_LEVELS = 500

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"


class Node:
    """A part of a document. References are followed; a part that is missing is an empty node, and
    so is one in another file, or a reference to itself.
    """

    def __init__(self, value: object, root: object) -> None:
        self._root = root
        self._value = _follow(value, root)
        # The same for all nodes of one place in the document.
        self.place = id(value)

    def at(self, key: str) -> "Node":
        value = self._value.get(key) if isinstance(self._value, dict) else None
        return Node(value, self._root)

    def members(self) -> Iterator[tuple[str, "Node"]]:
        """Yield names and values of an object."""
        if isinstance(self._value, dict):
            for key, value in self._value.items():
                if isinstance(key, str):
                    yield key, Node(value, self._root)

    def elements(self) -> Iterator["Node"]:
        """Yield the elements of a list."""
        if isinstance(self._value, list):
            yield from (Node(value, self._root) for value in self._value)

    def text(self) -> str:
        """Return a string, number, boolean or date as a request has it; "" for anything else."""
        match self._value:
            case bool():
                return str(self._value).lower()
            case int():
                return str(self._value) if self._value.bit_length() <= _MOST_BITS else ""
            case float() | str():
                text = str(self._value)
                # Only a character that can be sent: JSON can have half of a surrogate pair.
                return text if text.isprintable() else ""
            case datetime.date():
                return self._value.isoformat()
            case _:
                return ""

    def json(self) -> Json:
        """Return the part as it is; YAML's dates as text."""
        return cast(Json, json.loads(json.dumps(self._value, default=str)))

    @property
    def exists(self) -> bool:
        return self._value is not None

    def texts(self) -> list[str]:
        """Return the texts of a list's elements, or of the value itself."""
        nodes = list(self.elements()) or [self]
        return [text for node in nodes if (text := node.text())]


def parse_document(text: str, source: str) -> Node:
    """Parse a document that is a JSON or YAML object; `source` names it in errors.

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
    return Node(content, content)


def _parse(text: str, source: str) -> object:
    language = "JSON" if text[0] in "{[" else "YAML"
    try:
        with _collector_paused():
            return json.loads(text) if language == "JSON" else _load_yaml(text)
    # PyYAML lets errors of Python through: a date that does not exist, half of a surrogate pair.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = shorten(" ".join(str(error).split()))
        raise UsageError(
            f"{source} is not valid {language}: {problem}. Give an OpenAPI document."
        ) from None


def _load_yaml(text: str) -> object:
    """Load YAML with the parser in C: the one in Python takes minutes for a document of 4 MB."""
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        # The parser in C recurses without a limit: a deep document ends the process.
        if depth > _MOST_LEVELS:
            raise ValueError(f"more than {_MOST_LEVELS} levels")
    return yaml.load(text, yaml.CSafeLoader)


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


def _follow(value: Any, root: object) -> Any:
    """Return what the value refers to, with the value's other members laid over it."""
    followed: set[str] = set()
    while isinstance(value, dict) and isinstance(value.get("$ref"), str):
        reference = value["$ref"]
        if reference in followed or not reference.startswith("#"):
            return None
        followed.add(reference)
        target = _target(reference, root)
        if not isinstance(target, dict):
            return target
        value = target | {key: each for key, each in value.items() if key != "$ref"}
    return value


def _target(reference: str, root: Any) -> object:
    """Return the value that a JSON pointer names (RFC 6901); None if there is none."""
    for part in unquote(reference[1:]).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(root, Mapping):
            root = root.get(key)
        elif isinstance(root, list) and key.isdecimal() and int(key) < len(root):
            root = root[int(key)]
        else:
            return None
    return root
