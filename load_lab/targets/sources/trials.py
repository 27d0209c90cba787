"""Bodies sent to an operation until the target accepts one."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import httpx

from load_lab.targets.mix import UNIQUE
from load_lab.targets.sources.answers import parse
from load_lab.targets.sources.bodies import Bodies, BodyType, Fields, read_body_type
from load_lab.targets.sources.exchange import Content, Exchange, send
from load_lab.targets.sources.openapi import ApiOperation
from load_lab.targets.sources.paths import shape
from load_lab.targets.sources.samples import Samples
from load_lab.targets.sources.values import find_values

# Errors that another body may avoid, and those that no body does.
_REPAIRABLE = frozenset({400, 409, 422, 500})
_FINAL = frozenset({401, 403, 405})
_MOST_REPAIRS = 8
_MOST_REQUESTS = 24
_MOST_CHANGES = 6
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_RUN_DIGITS = 5


@dataclass
class Found:
    """The body that was accepted, the answers that were 2xx, and the last answer: an error if no
    body was accepted.
    """

    fields: Fields | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    last: Exchange = field(default_factory=lambda: Exchange(problem="no body found for it"))


@dataclass
class Created:
    """A POST that was accepted: its path and body, and the answers that name new objects."""

    operation: ApiOperation
    path: str
    fields: Fields | None
    exchanges: list[Exchange]


class Trials:
    """Requests with bodies, one after the other. `samples`: what bodies are made of."""

    def __init__(self, client: httpx.Client, samples: Samples) -> None:
        self._client, self._samples = client, samples
        self._types: dict[str, BodyType | None] = {}
        run = _base36(int(time.time()) % 36**_RUN_DIGITS)
        self._run, self._sent = run.zfill(_RUN_DIGITS), 0

    def search(
        self,
        operation: ApiOperation,
        paths: Sequence[str],
        drafts: Iterable[Fields | None],
        bodies: Bodies | None,
    ) -> Found:
        """Send bodies until one is accepted at each of the paths.

        Raises:
            LabError: the target accepts no connection.
        """
        found, requests, seen = Found(), 0, list[Fields | None]()
        for draft in drafts:
            body: Fields | None = draft
            for _ in range(_MOST_REPAIRS):
                if body in seen or requests >= _MOST_REQUESTS:
                    break
                seen.append(body)
                exchanges = list(self._send_each(operation, paths, body))
                requests += len(exchanges)
                found.exchanges += [each for each in exchanges if not each.problem]
                found.last = last = exchanges[-1]
                if not last.problem:
                    found.fields = body
                    return found
                if last.status not in _REPAIRABLE or body is None or bodies is None:
                    break
                repaired = bodies.repaired(body, parse(last.body))
                if repaired is None:
                    break
                body = repaired
            if found.last.status is None or found.last.status in _FINAL:
                break
        return found

    def _send_each(
        self, operation: ApiOperation, paths: Iterable[str], fields: Fields | None
    ) -> Iterator[Exchange]:
        for path in paths:
            exchange = send(self._client, operation.method, path, self._content(operation, fields))
            yield exchange
            if exchange.problem:
                return

    def _content(self, operation: ApiOperation, fields: Fields | None) -> Content | None:
        body = self.type_of(operation)
        if fields is None or body is None:
            return None
        self._sent += 1
        unique = f"{self._run}m{_base36(self._sent)}"
        return Content(body.media_type, body.text(fields).replace(UNIQUE, unique))

    def drafts(self, operation: ApiOperation) -> tuple[Iterable[Fields | None], Bodies | None]:
        body = self.type_of(operation)
        if body is None:
            return [None], None
        bodies = Bodies(body, self._samples, shape(operation.template))
        return bodies.first(), bodies

    def changes(
        self, operation: ApiOperation, created: Created
    ) -> tuple[Iterable[Fields | None], Bodies | None]:
        """Return the bodies for a created object: what it has, one field at a time for PATCH."""
        body = self.type_of(operation)
        if body is None:
            return [None], None
        if operation.method == "POST":
            return self.drafts(operation)
        known = {n: v for n, v in (created.fields or {}).items() if n in body.schema.writable}
        bodies = Bodies(body, self._samples, shape(created.operation.template))
        if operation.method == "PUT":
            return [known, *bodies.first()], bodies
        return list(self._single_fields(known, body))[:_MOST_CHANGES], bodies

    def _single_fields(self, known: Fields, body: BodyType) -> Iterator[Fields]:
        """Yield one field each: unique texts, simple values, then one that the object lacks."""
        is_unique = {name: UNIQUE in str(value) for name, value in known.items()}
        simple = [name for name, value in known.items() if not isinstance(value, dict | list)]
        yield from ({name: known[name]} for name in simple if is_unique[name])
        yield from ({name: known[name]} for name in simple if not is_unique[name])
        for name, schema in body.schema.writable.items():
            if name not in known and schema.kind == "string" and not schema.format:
                samples = self._samples
                yield from ({name: each} for each in find_values(name, schema, samples, ""))
        yield known

    def type_of(self, operation: ApiOperation) -> BodyType | None:
        if operation.name not in self._types:
            body = read_body_type(operation.body) if operation.method != "DELETE" else None
            self._types[operation.name] = body
        return self._types[operation.name]

    def has_unknown_body(self, operation: ApiOperation) -> bool:
        has_body = any(operation.body.at("content").members()) and operation.method != "DELETE"
        return has_body and self.type_of(operation) is None


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
    return digits or "0"
