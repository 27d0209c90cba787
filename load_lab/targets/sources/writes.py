"""Finds operations that write and that a target accepts, by sending them to objects that it
creates first, and deletes afterwards.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

import httpx

from load_lab.targets.mix import OBJECT, SAFE_METHODS, CreatedBy, LeftOut, Operation, Request
from load_lab.targets.sources.bodies import Found, Trials
from load_lab.targets.sources.described import ApiOperation, Outcomes, divided
from load_lab.targets.sources.document import Json
from load_lab.targets.sources.exchange import Exchange, failure_text, send
from load_lab.targets.sources.known_values import KnownValues, parse, plain
from load_lab.targets.sources.paths import parameter_names, shape, shape_above
from load_lab.targets.sources.safety import WRITES, Safety
from load_lab.targets.sources.values import identifiers, missing_values, queries

_MOST_IDENTIFIERS = 3
# A second one must be accepted too: a load creates many.
_OBJECTS = 2
_ORDER = {"POST": 0, "PATCH": 1, "PUT": 2, "DELETE": 3}
_LOCATION = "Location"


@dataclass(frozen=True)
class Writes:
    """What became of the operations that write. `remaining`: how many objects could not be
    deleted, by the name of the operation that created them.
    """

    outcomes: Outcomes
    remaining: Mapping[str, int]


def explore_writes(
    operations: Sequence[ApiOperation],
    client: httpx.Client,
    known: KnownValues,
    reads: Outcomes,
    safety: Safety = WRITES,
) -> Writes:
    """Return, for each operation that writes, what the target accepts, or why it is left out.

    `known` and `reads` are those of the exploration before. Only objects that this function creates
    are changed or deleted. The client should not keep connections.

    Raises:
        LabError: the target accepts no connection.
    """
    writer = _Writer(operations, client, known, reads, safety)
    writer.run()
    outcomes = {each: writer.outcomes[each] for each in operations if each in writer.outcomes}
    return Writes(outcomes, writer.remaining)


@dataclass(frozen=True)
class _Created:
    """A POST that was accepted: its path, and what was found: the answers that name new objects."""

    operation: ApiOperation
    path: str
    found: Found


@dataclass(frozen=True)
class _Identifier:
    """The id of a created object. `id_from`: where the answer has it, see `mix.CreatedBy`."""

    id_from: str
    value: str


class _Writer:
    """Requests that write, one after the other."""

    def __init__(
        self,
        operations: Sequence[ApiOperation],
        client: httpx.Client,
        known: KnownValues,
        reads: Outcomes,
        safety: Safety,
    ) -> None:
        self._client, self._known, self._safety = client, known, safety
        found, _ = divided(reads)
        self._paths = {each.name: [r.path for r in each.requests] for each in found}
        self._posts = {shape(each.template): each for each in operations if each.method == "POST"}
        self._writes = [each for each in operations if each.method not in SAFE_METHODS]
        self._trials = Trials(client, known)
        self.outcomes: Outcomes = {}
        self.remaining: Counter[str] = Counter()

    def run(self) -> None:
        """Send the operations that add items to a list first, each with those that change them."""
        sendable = [each for each in self._writes if self._is_sendable(each)]
        creators = [each for each in sendable if each.method == "POST" and self._lists(each)]
        creating = set(creators)
        changes = [each for each in sendable if each not in creating]
        by_list: dict[str, list[ApiOperation]] = defaultdict(list)
        for each in changes:
            by_list[shape_above(each.template) if each.path else ""].append(each)
        for creator in creators:
            own = by_list.pop(shape(creator.template), []) if shape(creator.template) else []
            self._explore(creator, sorted(own, key=lambda each: _ORDER[each.method]))
        for each in itertools.chain.from_iterable(by_list.values()):
            self._leave_out(each, "no operation of the mix creates its object")

    def _is_sendable(self, operation: ApiOperation) -> bool:
        reason = self._safety.reason(operation) or self._bulk_reason(operation)
        if reason:
            self._leave_out(operation, reason)
        return not reason

    def _bulk_reason(self, operation: ApiOperation) -> str:
        is_list = not shape(operation.template).endswith("{}")
        has_items = shape(operation.template) in self._posts and operation.method != "POST"
        is_bulk = (is_list and has_items) or operation.takes_list
        return "bulk: it changes many objects" if is_bulk else ""

    def _lists(self, operation: ApiOperation) -> list[str]:
        """Return addresses to which a POST adds items: without parameters, or of lists that GET
        reads. An action on an existing object is none.
        """
        if not operation.path:
            return [operation.template]
        return self._paths.get(f"GET {operation.template}", [])

    def _explore(self, creator: ApiOperation, changes: Sequence[ApiOperation]) -> None:
        creation = self._create(creator)
        for each in changes:
            if creation is None:
                self._leave_out(each, f"needs {creator.name}, which is left out")
            else:
                self._change(each, creation)
        if creation:
            self._clean_up(creation)

    # Objects.

    def _create(self, operation: ApiOperation) -> _Created | None:
        query = next(queries(operation, self._known), None)
        if query is None:
            self._leave_out(operation, missing_values(operation, self._known))
            return None
        if operation.has_unknown_body:
            self._leave_out(operation, "its body is neither JSON nor a form")
            return None
        path = self._lists(operation)[0].partition("?")[0] + query
        found = self._trials.create(operation, [path] * _OBJECTS)
        if found.last.problem:
            self._give_up(operation, path, found)
            return None
        self._add(operation, path, found)
        return _Created(operation, path, found)

    def _change(self, operation: ApiOperation, creation: _Created) -> None:
        """Send an operation to a created object; DELETE consumes it."""
        if operation.query or operation.has_unknown_body:
            self._leave_out(operation, "needs a query, or a body that is neither JSON nor a form")
            return
        if not creation.found.exchanges:
            self._leave_out(operation, f"{creation.operation.name} created no object for it")
            return
        found_ids = self._identifiers(operation, creation.found.exchanges[-1])
        new = [each for each in found_ids if self._is_new(operation, each, creation)]
        path = _object_path(creation.path, operation.template)
        for identifier in new[:_MOST_IDENTIFIERS]:
            paths = [_filled(path, each) for each in self._same(operation, identifier, creation)]
            paths = paths[-1:] if operation.method == "DELETE" else paths
            created = creation.found.fields or {}
            found = self._trials.change(operation, paths, creation.operation, created)
            if found.last.problem:
                self._give_up(operation, paths[0], found)
            else:
                by = CreatedBy(operation=creation.operation.name, id_from=identifier.id_from)
                self._add(operation, path, found, by)
                if operation.method == "DELETE":
                    creation.found.exchanges.pop()
                return
        if not new:
            name = creation.operation.name
            self._leave_out(operation, f"the answer of {name} has no id of a new object")

    def _same(
        self, operation: ApiOperation, identifier: _Identifier, creation: _Created
    ) -> list[_Identifier]:
        """Return the ids of all created objects, from the same place of the answer."""
        return [
            each
            for exchange in creation.found.exchanges
            for each in self._identifiers(operation, exchange)
            if each.id_from == identifier.id_from
        ]

    def _is_new(self, operation: ApiOperation, known: _Identifier, creation: _Created) -> bool:
        """Tell whether an id belongs to a new object: not to one that the target had before, nor
        the same one for each POST.
        """
        name = plain(known.id_from.rpartition(".")[2])
        items = self._known.items_above(operation.template)
        if any(known.value == item.fields.get(name) for item in items):
            return False
        values = [
            [each.value for each in self._identifiers(operation, exchange)]
            for exchange in creation.found.exchanges
        ]
        return sum(known.value in each for each in values) <= 1

    def _clean_up(self, creation: _Created) -> None:
        above = shape(creation.operation.template) + "/{}"
        deletes = (o for o in self._writes if o.method == "DELETE" and shape(o.template) == above)
        # Nobody needs to allow that the lab deletes what it created.
        allowed = (each for each in deletes if not self._safety.forbids(each))
        delete = next(allowed, None)
        for exchange in reversed(creation.found.exchanges):
            is_deleted = delete is not None and self._is_deleted(delete, exchange, creation)
            if exchange.status == httpx.codes.CREATED and not is_deleted:
                self.remaining[creation.operation.name] += 1

    def _is_deleted(self, operation: ApiOperation, exchange: Exchange, creation: _Created) -> bool:
        for identifier in self._identifiers(operation, exchange):
            if self._is_new(operation, identifier, creation):
                path = _filled(_object_path(creation.path, operation.template), identifier)
                return not send(self._client, "DELETE", path).problem
        return False

    # What was found.

    def _add(
        self, operation: ApiOperation, path: str, found: Found, by: CreatedBy | None = None
    ) -> None:
        body, fields = operation.body, found.fields
        text = body.text(fields) if body and fields is not None else None
        self.outcomes[operation] = Operation(
            name=operation.name,
            method=operation.method,
            weight=1,
            expect=found.exchanges[-1].status or 200,
            headers={"content-type": body.media_type} if body and text is not None else {},
            created_by=by,
            requests=(Request(path=path, body=text),),
        )

    def _give_up(self, operation: ApiOperation, path: str, found: Found) -> None:
        reason = failure_text(found.last, self._client.headers.values())
        self._leave_out(operation, f"{path} {reason}", found.last.status)
        # Without a second object to compare with, only its status says that it is new.
        created = [each for each in found.exchanges if each.status == httpx.codes.CREATED]
        if operation.method == "POST":
            self._clean_up(_Created(operation, path, Found(found.fields, created)))

    def _leave_out(self, operation: ApiOperation, reason: str, status: int | None = None) -> None:
        self.outcomes[operation] = LeftOut(name=operation.name, status=status, reason=reason)

    def _identifiers(self, operation: ApiOperation, exchange: Exchange) -> Iterator[_Identifier]:
        """Yield what may be the last placeholder of the operation in the answer that created an
        object, the most certain first.
        """
        prefix, fields = _object(parse(exchange.body))
        for name in identifiers(parameter_names(operation.template)[-1]):
            for key, value in fields.items():
                text = _text(value)
                if text and plain(key) == name:
                    yield _Identifier(prefix + key, _last_segment(text))
        addresses = [(prefix + key, _text(value)) for key, value in fields.items()]
        for key, text in (*addresses, (_LOCATION, exchange.location)):
            match = self._known.match(text)
            if match and match.template.shape == _object_shape(operation.template):
                yield _Identifier(key, _last_segment(text))


def _object_path(creator_path: str, template: str) -> str:
    """Return the path of an operation on an object that a POST to `creator_path` created, with the
    placeholder of the object.
    """
    after = template.rpartition("{")[2].partition("}")[2]
    return f"{creator_path.partition('?')[0].rstrip('/')}/{OBJECT}{after}"


def _filled(path: str, identifier: _Identifier) -> str:
    return path.replace(OBJECT, quote(identifier.value, safe=""))


def _object_shape(template: str) -> str:
    """Return the shape of the object's own address: `/orders/{}` of `/orders/{id}/photo/`."""
    return shape(template).rpartition("{}")[0] + "{}"


def _object(document: Json) -> tuple[str, dict[str, Json]]:
    """Return the object of an answer, and where it is: `{"article": {…}}` has it in `article.`."""
    if isinstance(document, dict) and len(document) == 1:
        [(key, value)] = document.items()
        if isinstance(value, dict):
            return f"{key}.", value
    return "", document if isinstance(document, dict) else {}


def _text(value: Json) -> str:
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) if is_id else ""


def _last_segment(text: str) -> str:
    """Return the last part of an address; the text itself if it is none."""
    if "/" not in text:
        return text
    try:
        return unquote(urlsplit(text).path.rstrip("/").rpartition("/")[2])
    except ValueError:
        return ""
