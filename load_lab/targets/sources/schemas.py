"""The schemas of parameters and bodies, and what they accept."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite
from urllib.parse import quote

from load_lab.targets.mix import UNIQUE
from load_lab.targets.sources.document import Json, Node

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"
# A schema may contain itself.
_MOST_LEVELS = 5
# How an answer names the id of a nested object, the most usual first; `value` is that of a choice.
_IDENTIFIERS = ("id", "pk", "uuid", "value", "slug", "code", "key", "name", "url")

# Values that a format allows; most objects of a target have a text of their own.
FORMATS: dict[str, Json] = {
    "date": "2030-01-01",
    "date-time": "2030-01-01T00:00:00Z",
    "time": "12:00:00",
    "duration": "P1D",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "ip": "192.0.2.1",
    "decimal": "1",
}


@dataclass(frozen=True)
class Schema:
    """What is read of a schema. `examples` are values that the document names, the most certain
    first; `choices` are all values that it allows, if it lists them.
    """

    kind: str = ""
    properties: Mapping[str, "Schema"] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    items: "Schema | None" = None
    examples: tuple[Json, ...] = ()
    choices: tuple[Json, ...] = ()
    format: str = ""
    pattern: str = ""
    longest: int | None = None
    minimum: float | None = None
    read_only: bool = False

    @property
    def writable(self) -> dict[str, "Schema"]:
        return {name: each for name, each in self.properties.items() if not each.read_only}

    @property
    def is_scalar(self) -> bool:
        return not self.properties and self.kind not in ("object", "array")


@dataclass(frozen=True)
class BodyType:
    """The body that an operation takes: its media type, schema, and the document's examples."""

    media_type: str
    schema: Schema
    examples: tuple[Json, ...]

    def text(self, fields: Mapping[str, Json]) -> str:
        """Return the body as it is sent."""
        if self.media_type == JSON_TYPE:
            return json.dumps(fields)
        pairs = (f"{_quoted(name)}={_quoted(value)}" for name, value in fields.items())
        return "&".join(pairs)


def read_schema(node: Node) -> Schema:
    """Read a schema with those that it is composed of; of alternatives, the first."""
    return _read_schema(node, _MOST_LEVELS, {})


def _read_schema(node: Node, levels: int, known: dict[tuple[int, int], Schema]) -> Schema:
    """Read a schema once for each place and level: it may contain itself several times."""
    place = (node.place, levels)
    if place not in known:
        known[place] = _read_parts(node, levels, known)
    return known[place]


def _read_parts(node: Node, levels: int, known: dict[tuple[int, int], Schema]) -> Schema:
    parts = list(_parts(node))
    properties: dict[str, Schema] = {}
    for name, each in (member for part in parts for member in part.at("properties").members()):
        if levels and name not in properties:
            properties[name] = _read_schema(each, levels - 1, known)
    items = [part.at("items") for part in parts if part.at("items").exists and levels]
    schema = Schema(
        kind=_kind(parts, properties),
        properties=properties,
        required=frozenset(name for part in parts for name in part.at("required").texts()),
        items=_read_schema(items[0], levels - 1, known) if items else None,
        format=_first_text(parts, "format"),
        pattern=_first_text(parts, "pattern"),
        longest=_whole(_first_text(parts, "maxLength")),
        minimum=_number(_first_text(parts, "minimum")),
        read_only=any(part.at("readOnly").is_true for part in parts),
    )
    return replace(
        schema,
        examples=tuple(typed(each, schema) for each in _examples(parts)),
        choices=tuple(typed(each, schema) for each in _choices(node)),
    )


def read_body_type(body: Node) -> BodyType | None:
    """Read the description of a body; None if it is neither JSON nor a form."""
    for name, media in body.at("content").members():
        media_type = name.partition(";")[0].strip().lower()
        if media_type in (JSON_TYPE, FORM_TYPE):
            schema = read_schema(media.at("schema"))
            return BodyType(media_type, schema, (*read_examples(media, schema), *schema.examples))
    return None


def read_examples(holder: Node, schema: Schema) -> tuple[Json, ...]:
    """Return the examples that a parameter, or the content of a body, has besides its schema."""
    nodes = [holder.at("example")]
    nodes += [each.at("value") for _, each in holder.at("examples").members()]
    return tuple(typed(each.json(), schema) for each in nodes if each.exists)


def typed(value: Json, schema: Schema) -> Json:
    """Return a value of a document with the types of the schema: YAML does not know them."""
    match value:
        case dict():
            parts = schema.properties
            return {name: typed(each, parts.get(name, Schema())) for name, each in value.items()}
        case list():
            return [typed(each, schema.items or Schema()) for each in value]
        case None:
            return None
        case _:
            return _scalar(value, schema.kind)


def _scalar(value: str | float, kind: str) -> Json:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if kind == "string":
        return text
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind not in ("integer", "number") or not isinstance(value, str):
        return value
    with suppress(ValueError):
        return int(text)
    number = _number(text)
    return value if number is None else number


def fitted(value: Json, schema: Schema) -> Iterator[Json]:
    """Yield a value of an answer as the schema of a request wants it; nothing if it does not fit.

    An answer may have a nested object where the request has its id.
    """
    match value:
        case None:
            return
        case dict():
            yield from _fitted_object(value, schema)
        case list():
            if not (schema.properties or schema.kind not in ("array", "")):
                elements = schema.items or Schema()
                yield [each for element in value for each in fitted(element, elements)]
        case _ if schema.kind == "object" or schema.properties:
            if "id" in schema.properties:
                yield {"id": value}
        case _ if schema.kind != "array" and (not schema.choices or value in schema.choices):
            yield value


def accepts_text(schema: Schema, text: str) -> bool:
    """Return whether length and pattern of a schema allow a text."""
    try:
        matches = not schema.pattern or re.search(schema.pattern, text) is not None
    except (re.error, RecursionError):
        matches = True
    return matches and (schema.longest is None or len(text) <= schema.longest)


def _fitted_object(value: dict[str, Json], schema: Schema) -> Iterator[Json]:
    identifier = next((name for name in _IDENTIFIERS if _is_scalar(value.get(name))), "")
    if schema.is_scalar and schema.kind:
        if identifier:
            yield value[identifier]
    elif schema.properties and identifier in schema.writable:
        # One field identifies a nested object that exists; the others could contradict it.
        yield {identifier: value[identifier]}
    elif schema.properties:
        yield {
            name: each
            for name, part in schema.writable.items()
            for each in fitted(value.get(name), part)
        }
    elif schema.kind != "array":
        yield value


def _is_scalar(value: Json) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _parts(node: Node) -> Iterator[Node]:
    """Yield a schema, those that it is composed of, and its first alternative that is not null."""
    waiting, seen = [node], set[int]()
    while waiting:
        part = waiting.pop(0)
        if part.place in seen:
            continue
        seen.add(part.place)
        yield part
        waiting.extend(part.at("allOf").elements())
        alternatives = [*part.at("oneOf").elements(), *part.at("anyOf").elements()]
        waiting.extend([each for each in alternatives if each.at("type").text() != "null"][:1])


def _kind(parts: list[Node], properties: Mapping[str, Schema]) -> str:
    texts = [text for part in parts for text in part.at("type").texts() if text != "null"]
    return texts[0] if texts else "object" if properties else ""


def _examples(parts: list[Node]) -> Iterator[Json]:
    for key in ("example", "examples", "default", "const", "enum"):
        for each in (part.at(key) for part in parts):
            # `examples` and `enum` are lists of values.
            is_list = key in ("examples", "enum")
            yield from (e.json() for e in (each.elements() if is_list else [each]) if e.exists)


def _choices(node: Node) -> Iterator[Json]:
    """Yield the values of every alternative: an empty one is often one."""
    alternatives = [*node.at("oneOf").elements(), *node.at("anyOf").elements()]
    for part in (*_parts(node), *alternatives):
        yield from (each.json() for each in part.at("enum").elements())


def _first_text(parts: list[Node], key: str) -> str:
    return next((text for part in parts if (text := part.at(key).text())), "")


def _whole(text: str) -> int | None:
    number = _number(text)
    return None if number is None else int(number)


def _number(text: str) -> float | None:
    """Return the number of a text, an integer if it is one; None if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    if not isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def _quoted(value: Json) -> str:
    """Return a value as a form has it; k6 replaces what it finds, so the placeholder stays."""
    text = value if isinstance(value, str) else json.dumps(value)
    return UNIQUE.join(quote(part, safe="") for part in text.split(UNIQUE))
