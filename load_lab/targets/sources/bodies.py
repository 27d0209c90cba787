"""Bodies that an operation may accept, the most certain first, and their repair after an error."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from urllib.parse import quote

from load_lab.targets.mix import UNIQUE
from load_lab.targets.sources.json_or_yaml import Json, Node
from load_lab.targets.sources.samples import Samples
from load_lab.targets.sources.schemas import Schema, fitted, read_schema, typed
from load_lab.targets.sources.secret_words import credential_in_body
from load_lab.targets.sources.values import find_values, unique_text

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"
# Items of a list that are copied, and values of a field that are tried.
_MOST_COPIES = 3
_MOST_TRIED = 8
# Fields that are often unique, by the last word of their name.
_UNIQUE_WORDS = frozenset(
    {
        *("code", "domain", "email", "host", "hostname", "identifier", "isbn", "key", "label"),
        *("login", "name", "number", "reference", "serial", "sku", "slug", "tag", "title"),
        *("username",),
    }
)
# Fields of an item that the target assigns.
_ASSIGNED = frozenset({"id", "pk", "uuid", "url"})
_SAYS_UNIQUE = re.compile(r"uniq|exist|already|duplicate|taken|conflict|overlap|in use", re.I)

Fields = dict[str, Json]


@dataclass(frozen=True)
class BodyType:
    """The body that an operation takes: its media type, schema, and the document's examples."""

    media_type: str
    schema: Schema
    examples: tuple[Json, ...]

    def text(self, fields: Fields) -> str:
        """Return the body as it is sent."""
        if self.media_type == JSON_TYPE:
            return json.dumps(fields)
        pairs = (f"{_quoted(name)}={_quoted(value)}" for name, value in fields.items())
        return "&".join(pairs)


def read_body_type(body: Node) -> BodyType | None:
    """Read the description of a body; None if it is neither JSON nor a form."""
    for name, media in body.at("content").members():
        media_type = name.partition(";")[0].strip().lower()
        if media_type in (JSON_TYPE, FORM_TYPE):
            nodes = [media.at("example")]
            nodes += [each.at("value") for _, each in media.at("examples").members()]
            schema = read_schema(media.at("schema"))
            found = (typed(node.json(), schema) for node in nodes if node.exists)
            return BodyType(media_type, schema, (*found, *schema.examples))
    return None


@dataclass
class Bodies:
    """The bodies of one operation. `above`: the shape of the list that it adds an item to."""

    type: BodyType
    samples: Samples
    above: str
    _used: dict[str, int] = field(default_factory=dict)

    def first(self) -> Iterator[Fields]:
        """Yield the document's examples, copies of items, and the required properties alone."""
        for example in self.type.examples:
            if isinstance(example, dict):
                yield self._with_unique_texts(example)
        items = self.samples.items(self.above)
        step = max(1, len(items) // _MOST_COPIES)
        yield from (self._copy(item) for item in items[::step][:_MOST_COPIES])
        yield self._required()

    def repaired(self, fields: Fields, answer: Json) -> Fields | None:
        """Return the body with the fields changed that an error names; None if it names none.

        A field that must be unique gets another text; one that may be missing is left out; others
        get the next value.
        """
        changed = dict(fields)
        names = list(_named(answer, self._writable)) or list(_mentioned(answer, self._writable))
        for name, message in names:
            self._repair(changed, name, message)
        if not names:
            changed = self._all_unique(fields)
        return None if changed == fields else changed

    @property
    def _writable(self) -> dict[str, Schema]:
        return self.type.schema.writable

    def _copy(self, item: Fields) -> Fields:
        copied = {
            name: value
            for name, schema in self._writable.items()
            for value in fitted(item.get(name), schema)
            if self._is_copied(name, value)
        }
        missing = self.type.schema.required - copied.keys()
        return self._with_unique_texts(copied) | self._values_of(missing)

    def _is_copied(self, name: str, value: Json) -> bool:
        required = self.type.schema.required
        is_empty = value in ("", [], {})
        is_assigned = name in _ASSIGNED
        has_secret = credential_in_body(json.dumps({name: value})) and isinstance(value, str)
        return not has_secret and (name in required or not (is_empty or is_assigned))

    def _required(self) -> Fields:
        return self._values_of(self.type.schema.required)

    def _values_of(self, names: Iterator[str] | frozenset[str]) -> Fields:
        ordered = [name for name in self._writable if name in names]
        return {name: value for name in ordered for value in self._next_value(name)}

    def _next_value(self, name: str) -> Sequence[Json]:
        """Return the next value of a field that was not used; none after the last."""
        used = self._used.get(name, 0)
        self._used[name] = used + 1
        values = find_values(name, self._writable[name], self.samples, self.above)
        return [] if used >= _MOST_TRIED else list(islice(values, used, used + 1))

    def _with_unique_texts(self, fields: Fields) -> Fields:
        names = [name for name in fields if name in self._writable and self._is_unique(name)]
        return fields | {name: self._unique(name, fields[name]) for name in names}

    def _is_unique(self, name: str) -> bool:
        """Tell whether a field seems to be unique: by its name, or since no two items share it."""
        schema = self._writable[name]
        if schema.choices or schema.format in ("uuid", "date", "date-time", "uri"):
            return False
        words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
        texts = [item.get(name) for item in self.samples.items(self.above)]
        texts = [text for text in texts if isinstance(text, str) and text]
        differ = len(texts) > 2 and len(set(map(str, texts))) == len(texts)
        return differ or bool(words and words[-1] in _UNIQUE_WORDS)

    def _unique(self, name: str, value: Json) -> Json:
        if not isinstance(value, str) or UNIQUE in value:
            return value
        return unique_text(value, self._writable[name])

    def _all_unique(self, fields: Fields) -> Fields:
        texts = (name for name in fields if name in self._writable)
        free = [name for name in texts if not self._writable[name].choices]
        return fields | {name: self._unique(name, fields[name]) for name in free}

    def _repair(self, fields: Fields, name: str, message: str) -> None:
        value = fields.get(name)
        other = self._unique(name, value)
        if _SAYS_UNIQUE.search(message) and other != value:
            fields[name] = other
        elif name in fields and name not in self.type.schema.required:
            del fields[name]
        elif found := self._next_value(name):
            fields[name] = found[0]


def _named(answer: Json, names: dict[str, Schema]) -> Iterator[tuple[str, str]]:
    """Yield the fields that an error has as keys (DRF), or as places (`"loc": ["body", "name"]`),
    with what it says of each.
    """
    if isinstance(answer, list):
        yield from chain.from_iterable(_named(each, names) for each in answer)
    elif isinstance(answer, dict):
        place = answer.get("loc") or answer.get("field") or answer.get("path")
        places = place if isinstance(place, list) else [place]
        yield from ((str(p), str(answer)) for p in places if isinstance(p, str) and p in names)
        for key, value in answer.items():
            if key in names:
                yield key, str(value)
            else:
                yield from _named(value, names)


def _mentioned(answer: Json, names: dict[str, Schema]) -> Iterator[tuple[str, str]]:
    """Yield the fields whose names are words of an error's text: "The fields a, b must …"."""
    text = json.dumps(answer)
    words = set(re.findall(r"\w+", text))
    yield from ((name, text) for name in names if name in words)


def _quoted(value: Json) -> str:
    """Return a value as a form has it; k6 replaces what it finds, so the placeholder stays."""
    text = value if isinstance(value, str) else json.dumps(value)
    return UNIQUE.join(quote(part, safe="") for part in text.split(UNIQUE))
