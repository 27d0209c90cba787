"""Values that a field of a request's body may have, the most certain first."""

import re
from collections.abc import Iterator

from load_lab.targets.mix import UNIQUE
from load_lab.targets.sources.document import Json
from load_lab.targets.sources.known_values import KnownValues, plain
from load_lab.targets.sources.schemas import FORMATS, Schema, accepts_text, fitted

# k6 puts so many characters, at most, in place of UNIQUE.
UNIQUE_LENGTH = 12
_BY_FORMAT: dict[str, Json] = FORMATS | {
    "email": f"lab-{UNIQUE}@example.org",
    "uri": f"http://example.org/{UNIQUE}",
    "url": f"http://example.org/{UNIQUE}",
    "hostname": f"lab-{UNIQUE}.example.org",
}


def find_values(name: str, schema: Schema, known: KnownValues, above: str) -> Iterator[Json]:
    """Yield different values of a field: those of the document, then of the list `above`, of any
    field of that name, ids of the list that the name refers to, and last what the type allows.
    """
    seen: list[Json] = []
    for value in _values(name, schema, known, above):
        if value not in seen:
            seen.append(value)
            yield value


def unique_text(text: str, schema: Schema) -> str:
    """Return the text with a part that k6 makes unique; the text itself if the schema allows none.

    An address of e-mail stays one.
    """
    before, at, after = text.rpartition("@")
    start, end = (before, at + after) if at else (text, "")
    room = UNIQUE_LENGTH + len(end) + 1
    start = start[: (schema.longest or 255) - room] if (schema.longest or 255) > room else ""
    for candidate in (f"{start}-{UNIQUE}{end}", f"{start}{UNIQUE}{end}"):
        if accepts_text(schema, candidate.replace(UNIQUE, "a" * UNIQUE_LENGTH)):
            return candidate
    return text


def _values(name: str, schema: Schema, known: KnownValues, above: str) -> Iterator[Json]:
    yield from schema.examples
    # An answer may have another form than a request may: settings of DRF tell both.
    if schema.format in FORMATS:
        yield FORMATS[schema.format]
    # A text may be a name that must exist: those of answers come after one that is new.
    if schema.kind == "string" and not schema.format and not schema.choices:
        yield from _first(_texts(schema))
    items = [item.get(name) for item in known.objects(above)]
    for value in (*items, *_of_name(name, schema, known)):
        yield from (each for each in fitted(value, schema) if each not in ("", [], {}))
    for shorter in _shorter_names(name):
        yield from _references(shorter, schema, known)
        for value in _of_name(shorter, schema, known):
            yield from (each for each in fitted(value, schema) if each not in ("", [], {}))
    yield from _generated(schema, known)


def _references(name: str, schema: Schema, known: KnownValues) -> Iterator[Json]:
    """Yield the ids of the items of the list that the field's name refers to: `order_id`, `orders`
    of `/orders/`.
    """
    plurals = _plurals(plain(re.sub(r"_(ids?|pks?|uuids?)$", "", name)))
    for shape in known.lists():
        if plain(shape.rpartition("/")[2]) in plurals:
            for item in known.objects(shape):
                element = schema.items if schema.kind == "array" and schema.items else schema
                for value in fitted(item, element):
                    yield [value] if schema.kind == "array" else value


def _of_name(name: str, schema: Schema, known: KnownValues) -> Iterator[Json]:
    """Yield values of fields of this name, and elements of lists whose name is its plural."""
    yield from known.examples(name)
    if schema.kind != "array":
        lists = [value for value in known.examples(f"{name}s") if isinstance(value, list)]
        yield from (element for value in lists for element in value)


def _shorter_names(name: str) -> list[str]:
    """Return the name, then without its first words: `home_city_id`, `city_id`."""
    words = name.split("_")
    shortest = 2 if words[-1] in ("id", "ids", "type", "name") else 1
    return ["_".join(words[i:]) for i in range(len(words) - shortest + 1)] or [name]


def _plurals(word: str) -> set[str]:
    return {word, f"{word}s", f"{word}es", f"{word.removesuffix('y')}ies"}


def _generated(schema: Schema, known: KnownValues) -> Iterator[Json]:
    match schema.kind:
        case "boolean":
            yield from (False, True)
        case "integer":
            yield int(schema.minimum or 1)
        case "number":
            yield schema.minimum or 1
        case "array":
            elements = _first(find_values("", schema.items, known, "")) if schema.items else []
            yield from ([each] for each in elements)
            yield []
        case "object":
            yield from _objects(schema, known)
        case "" if not schema.format and not schema.choices:
            # Any JSON.
            yield {}
            yield from _texts(schema)
        case _:
            yield from _texts(schema)


def _objects(schema: Schema, known: KnownValues) -> Iterator[Json]:
    """Yield an object with the required properties. One that has an id but no required property
    refers to an object that exists: there is none to refer to.
    """
    names = [name for name in schema.writable if name in schema.required]
    if names or "id" not in schema.properties:
        yield {
            name: value
            for name in names
            for value in _first(find_values(name, schema.properties[name], known, ""))
        }


def _first(values: Iterator[Json]) -> list[Json]:
    return [value for value, _ in zip(values, range(1), strict=False)]


def _texts(schema: Schema) -> Iterator[Json]:
    if schema.format in _BY_FORMAT:
        yield _BY_FORMAT[schema.format]
        return
    texts = (f"lab-{UNIQUE}", f"lab{UNIQUE}", UNIQUE, "lab", "L", "1", "2030-01-01", "192.0.2.1")
    rendered = ((text, text.replace(UNIQUE, "a" * UNIQUE_LENGTH)) for text in texts)
    yield from (text for text, sample in rendered if accepts_text(schema, sample))
