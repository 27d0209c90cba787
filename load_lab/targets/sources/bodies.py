"""Bodies that an operation may accept, the most certain first, sent until it accepts one."""

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

import httpx

from load_lab.targets.mix import UNIQUE
from load_lab.targets.sources.described import ApiOperation
from load_lab.targets.sources.document import Json
from load_lab.targets.sources.exchange import Content, Exchange, Tries, send
from load_lab.targets.sources.known_values import KnownValues, parse
from load_lab.targets.sources.paths import shape, words
from load_lab.targets.sources.safety import credential_in_body
from load_lab.targets.sources.schemas import BodyType, Schema, fitted
from load_lab.targets.sources.values import find_values, unique_text

# Items of a list that are copied, and values of a field that are tried.
_MOST_COPIES = 3
_MOST_TRIED = 8
# Errors that another body may avoid, and those that no body does.
_REPAIRABLE = frozenset({400, 409, 422, 500})
_FINAL = frozenset({401, 403, 405})
_MOST_REPAIRS = 8
_MOST_REQUESTS = 24
_MOST_CHANGES = 6
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_RUN_DIGITS = 5
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


@dataclass
class Bodies:
    """The bodies of one operation. `above`: the shape of the list that it adds an item to."""

    type: BodyType
    known: KnownValues
    above: str
    _used: dict[str, int] = field(default_factory=dict)

    def first(self) -> Iterator[Fields]:
        """Yield the document's examples, copies of items, and the required properties alone."""
        for example in self.type.examples:
            if isinstance(example, dict):
                yield self._with_unique_texts(example)
        items = self.known.objects(self.above)
        step = max(1, len(items) // _MOST_COPIES)
        yield from (self._copy(item) for item in items[::step][:_MOST_COPIES])
        yield self._values_of(self.type.schema.required)

    def changes(self, created: Fields) -> Iterator[Fields]:
        """Yield one field each: unique texts, simple values, then one that the object lacks."""
        is_unique = {name: UNIQUE in str(value) for name, value in created.items()}
        simple = [name for name, value in created.items() if not isinstance(value, dict | list)]
        for name in sorted(simple, key=lambda each: not is_unique[each]):
            yield {name: created[name]}
        for name, schema in self._writable.items():
            if name not in created and schema.kind == "string" and not schema.format:
                yield from ({name: each} for each in find_values(name, schema, self.known, ""))
        yield created

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

    def _values_of(self, names: Iterator[str] | frozenset[str]) -> Fields:
        ordered = [name for name in self._writable if name in names]
        return {name: value for name in ordered for value in self._next_value(name)}

    def _next_value(self, name: str) -> Sequence[Json]:
        """Return the next value of a field that was not used; none after the last."""
        used = self._used.get(name, 0)
        self._used[name] = used + 1
        values = find_values(name, self._writable[name], self.known, self.above)
        return [] if used >= _MOST_TRIED else list(islice(values, used, used + 1))

    def _with_unique_texts(self, fields: Fields) -> Fields:
        names = [name for name in fields if name in self._writable and self._is_unique(name)]
        return fields | {name: self._unique(name, fields[name]) for name in names}

    def _is_unique(self, name: str) -> bool:
        """Tell whether a field seems to be unique: by its name, or since no two items share it."""
        schema = self._writable[name]
        if schema.choices or schema.format in ("uuid", "date", "date-time", "uri"):
            return False
        texts = [item.get(name) for item in self.known.objects(self.above)]
        texts = [text for text in texts if isinstance(text, str) and text]
        differ = len(texts) > 2 and len(set(map(str, texts))) == len(texts)
        return differ or not _UNIQUE_WORDS.isdisjoint(words(name)[-1:])

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


@dataclass
class Found:
    """The body that was accepted, the answers that were 2xx, and the last answer: an error if no
    body was accepted.
    """

    fields: Fields | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    last: Exchange = field(default_factory=lambda: Exchange(problem="no body found for it"))


class Trials:
    """Requests with bodies, one after the other. `known`: what bodies are made of."""

    def __init__(self, client: httpx.Client, known: KnownValues) -> None:
        self._client, self._known = client, known
        run = _base36(int(time.time()) % 36**_RUN_DIGITS)
        self._run, self._sent = run.zfill(_RUN_DIGITS), 0

    def create(self, operation: ApiOperation, paths: Sequence[str]) -> Found:
        """Send bodies until one is accepted at each of the paths.

        Raises:
            LabError: the target accepts no connection.
        """
        bodies = self._bodies(operation, operation)
        return self._search(operation, paths, bodies, bodies.first() if bodies else [None])

    def change(
        self, operation: ApiOperation, paths: Sequence[str], creator: ApiOperation, created: Fields
    ) -> Found:
        """Send bodies for objects that the `creator` made of what is `created`: the same ones, or
        one field at a time for PATCH. Raises as `create`.
        """
        if operation.method == "POST":
            return self.create(operation, paths)
        bodies = self._bodies(operation, creator)
        drafts: Iterable[Fields | None] = [None]
        if bodies:
            same = {n: v for n, v in created.items() if n in bodies.type.schema.writable}
            is_whole = operation.method == "PUT"
            changes = islice(bodies.changes(same), _MOST_CHANGES)
            drafts = chain([same], bodies.first()) if is_whole else changes
        return self._search(operation, paths, bodies, drafts)

    def _bodies(self, operation: ApiOperation, creator: ApiOperation) -> Bodies | None:
        body = operation.body
        return Bodies(body, self._known, shape(creator.template)) if body else None

    def _search(
        self,
        operation: ApiOperation,
        paths: Sequence[str],
        bodies: Bodies | None,
        drafts: Iterable[Fields | None],
    ) -> Found:
        tries, found, sent_before = Tries[Fields | None](), Found(), self._sent

        def send_each(fields: Fields | None) -> Exchange:
            for path in paths:
                content = self._content(operation, fields)
                found.last = send(self._client, operation.method, path, content)
                if found.last.problem:
                    break
                found.exchanges.append(found.last)
            is_enough = self._sent - sent_before >= _MOST_REQUESTS
            tries.is_over = bool(found.last.problem) and (is_enough or found.last.status in _FINAL)
            return found.last

        attempts = _repaired(drafts, bodies, tries)
        tries.run(send_each, attempts, enough=1, most_failures=_MOST_REQUESTS)
        found.fields = next(iter(tries.accepted), None)
        return found

    def _content(self, operation: ApiOperation, fields: Fields | None) -> Content | None:
        if fields is None or operation.body is None:
            return None
        self._sent += 1
        unique = f"{self._run}m{_base36(self._sent)}"
        text = operation.body.text(fields).replace(UNIQUE, unique)
        return Content(operation.body.media_type, text)


def _repaired(
    drafts: Iterable[Fields | None], bodies: Bodies | None, tries: Tries[Fields | None]
) -> Iterator[Fields | None]:
    """Yield the drafts, each with its repairs after the errors to which it led."""
    seen: list[Fields | None] = []
    for draft in drafts:
        body = draft
        for _ in range(_MOST_REPAIRS):
            if body in seen:
                break
            seen.append(body)
            yield body
            status = tries.last.status if tries.last else None
            if body is None or bodies is None or status not in _REPAIRABLE:
                break
            repaired = bodies.repaired(body, parse(tries.last.body)) if tries.last else None
            if repaired is None:
                break
            body = repaired


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


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
    return digits or "0"
