"""Values that a request may have, the most certain first: those of its address, and of the fields
of its body.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import TypeVar
from urllib.parse import urlencode

from load_lab.targets.mix import UNIQUE
from load_lab.targets.sources.described import ApiOperation, Parameter
from load_lab.targets.sources.document import Json
from load_lab.targets.sources.known_values import KnownValues, plain
from load_lab.targets.sources.paths import Values, fill, shape_above
from load_lab.targets.sources.schemas import FORMATS, Schema, accepts_text, fitted

# The origin of values that are certain, and may be few.
ADDRESSES = "addresses"
# Fields that identify an item, the most usual first, if none has the parameter's name.
_IDENTIFIERS = ("id", "pk", "uuid", "slug", "code", "identifier", "key", "name", "")
# A text for people, which is no value if there are others: `Summer, 5 May`.
_LABEL = re.compile(r"[\s,;]")
# Values of each parameter that are combined with those of the others.
_MOST_COMBINED = 50
# Multiples of it, modulo 1, are spread evenly (https://oeis.org/A094214).
_GOLDEN_RATIO = (5**0.5 - 1) / 2
# k6 puts so many characters, at most, in place of UNIQUE.
UNIQUE_LENGTH = 12
_BY_FORMAT: dict[str, Json] = FORMATS | {
    "email": f"lab-{UNIQUE}@example.org",
    "uri": f"http://example.org/{UNIQUE}",
    "url": f"http://example.org/{UNIQUE}",
    "hostname": f"lab-{UNIQUE}.example.org",
}

_T = TypeVar("_T")


@dataclass(frozen=True)
class Candidate:
    """An address; `values` are those of its placeholders."""

    path: str
    values: Values


def find_candidates(
    operation: ApiOperation, known: KnownValues, seed: int
) -> Iterator[tuple[str, Iterator[Candidate]]]:
    """Yield places, and the candidates of an operation from each, the most certain first. The first
    candidates are spread evenly over all of the place; another seed begins elsewhere.
    """
    found = list(islice(queries(operation, known), _MOST_COMBINED))
    for origin, values in _values(operation, known):
        fitting = [each for each in dict.fromkeys(values) if _agree(each, operation)]
        pairs = list(product(fitting, found))
        yield origin, _candidates(operation, _spread(pairs, seed))


def _agree(values: Values, operation: ApiOperation) -> bool:
    """Return whether values are those that the user gives, where there are some."""
    pairs = zip(operation.path, values, strict=True)
    return all(value in parameter.given for parameter, value in pairs if parameter.given)


def _candidates(
    operation: ApiOperation, pairs: Iterable[tuple[Values, str]]
) -> Iterator[Candidate]:
    for values, query in pairs:
        # A client removes "." and ".." from a path.
        if not {".", ".."} & set(values):
            yield Candidate(fill(operation.template, values) + query, values)


def _spread(values: Sequence[_T], seed: int) -> list[_T]:
    """Return the values in an order whose beginning, of any length, is spread evenly over them."""
    order = sorted(range(len(values)), key=lambda i: (i + seed) * _GOLDEN_RATIO % 1)
    return [values[i] for i in order]


def missing_values(operation: ApiOperation, known: KnownValues) -> str:
    """Return why an operation has no candidate: the parameters without a value."""
    template, count = operation.template, len(operation.path)
    missing = [
        f"{{{p.name}}}"
        for i, p in enumerate(operation.path, start=1)
        if not (_pool(p, known) or known.known(template, i))
    ]
    missing += [p.name for p in operation.query if not _pool(p, known)]
    names = ", ".join(missing or [f"{{{p.name}}}" for p in operation.path])
    is_empty = count and known.is_empty(template)
    return f"no value found for {names}" + (
        f": the list {shape_above(template)} is empty" if is_empty else ""
    )


def _values(operation: ApiOperation, known: KnownValues) -> Iterator[tuple[str, Iterable[Values]]]:
    """Yield origins, and values of all placeholders together."""
    if not operation.path:
        yield "path", [()]
        return
    *before, last = operation.path
    if operation.template.startswith("{"):
        first, *others = operation.path
        rest = list(islice(_combined(others, known), _MOST_COMBINED))
        addresses = first.given or known.addresses(first.name)
        yield "hrefs", [(each, *values) for each in addresses for values in rest]
        return
    if all(parameter.given for parameter in operation.path):
        yield "given", islice(_combined(operation.path, known), _MOST_COMBINED)
        return
    certain = known.known(operation.template, len(operation.path))
    yield ADDRESSES, certain
    items = known.items_above(operation.template)
    for field in identifiers(last.name):
        yield f"items {field}", [(*i.outer, i.fields[field]) for i in items if field in i.fields]
    outer = known.known(operation.template, len(before)) or _combined(before, known)
    outer = list(islice(outer, _MOST_COMBINED))
    yield "document", [(*values, value) for values in outer for value in last.values]
    for origin, found in (
        ("names", known.used(last.name)),
        ("fields", known.fields(last.name)),
    ):
        no_labels = [each for each in found if not _LABEL.search(each)]
        fitting = no_labels if no_labels or certain else found
        yield origin, [(*values, value) for values in outer for value in fitting[:_MOST_COMBINED]]


def identifiers(name: str) -> tuple[str, ...]:
    """Return the fields of an item that may be the value of a parameter: its whole name, what
    stands behind a dot, the last word of it (`slug` of `order_slug`), then the usual ones.
    """
    last_part = name.rpartition(".")[2]
    last_word = re.split(r"[_-]|(?<=[a-z])(?=[A-Z])", last_part)[-1]
    return tuple(dict.fromkeys((plain(name), plain(last_part), plain(last_word), *_IDENTIFIERS)))


def _combined(parameters: Iterable[Parameter], known: KnownValues) -> Iterator[Values]:
    """Yield combinations of the values of each parameter."""
    return product(*(_pool(parameter, known)[:_MOST_COMBINED] for parameter in parameters))


def _pool(parameter: Parameter, known: KnownValues) -> list[str]:
    if parameter.given:
        return list(parameter.given)
    found = (*known.used(parameter.name), *known.fields(parameter.name))
    return list(dict.fromkeys((*parameter.values, *found, *parameter.guesses)))


def queries(operation: ApiOperation, known: KnownValues) -> Iterator[str]:
    """Yield query strings that have the required parameters."""
    names = [parameter.name for parameter in operation.query]
    for values in _combined(operation.query, known):
        yield f"?{urlencode(list(zip(names, values, strict=True)))}" if names else ""


def find_values(name: str, schema: Schema, known: KnownValues, above: str) -> Iterator[Json]:
    """Yield different values of a field: those of the document, then of the list `above`, of any
    field of that name, ids of the list that the name refers to, and last what the type allows.
    """
    seen: list[Json] = []
    for value in _field_values(name, schema, known, above):
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


def _field_values(name: str, schema: Schema, known: KnownValues, above: str) -> Iterator[Json]:
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
