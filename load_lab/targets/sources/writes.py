"""Finds operations that write and that a target accepts, by sending them to objects that it
creates first, and deletes afterwards.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import httpx

from load_lab.targets.mix import SAFE_METHODS, CreatedBy, LeftOut, Operation, Request
from load_lab.targets.sources.answers import Answers, plain
from load_lab.targets.sources.candidates import missing_values, queries
from load_lab.targets.sources.created import Identifier, filled, find_identifiers, object_path
from load_lab.targets.sources.exchange import Exchange, failure_text, send
from load_lab.targets.sources.openapi import ApiOperation
from load_lab.targets.sources.paths import shape, shape_above
from load_lab.targets.sources.safety import forbidden_reason, left_out_reason
from load_lab.targets.sources.trials import Created, Found, Trials

_MOST_IDENTIFIERS = 3
# A second one must be accepted too: a load creates many.
_OBJECTS = 2
_ORDER = {"POST": 0, "PATCH": 1, "PUT": 2, "DELETE": 3}


@dataclass(frozen=True)
class Writes:
    """Operations that write. `remaining`: how many objects could not be deleted, by the name of
    the operation that created them.
    """

    operations: tuple[Operation, ...]
    left_out: tuple[LeftOut, ...]
    remaining: Mapping[str, int]


def explore_writes(
    operations: Sequence[ApiOperation],
    client: httpx.Client,
    answers: Answers,
    reads: Sequence[Operation],
    *,
    named: Collection[str] = (),
    leave_out: Collection[str] = (),
    report: Callable[[str], None] = lambda _: None,
) -> Writes:
    """Return the operations of the document that write, as far as the target accepts them.

    `answers` and `reads` are those of the exploration before, and so are `named` and `leave_out`.
    Only objects that this function creates are changed or deleted. The client should not keep
    connections.

    Raises:
        LabError: the target accepts no connection.
    """
    writer = _Writer(operations, client, answers, reads, named, leave_out, report)
    writer.run()
    order = {each.name: i for i, each in enumerate(operations)}
    return Writes(
        tuple(sorted(writer.found, key=lambda each: order[each.name])),
        tuple(sorted(writer.left_out, key=lambda each: order[each.name])),
        writer.remaining,
    )


class _Writer:
    """Requests that write, one after the other."""

    def __init__(
        self,
        operations: Sequence[ApiOperation],
        client: httpx.Client,
        answers: Answers,
        reads: Sequence[Operation],
        named: Collection[str],
        leave_out: Collection[str],
        report: Callable[[str], None],
    ) -> None:
        self._client, self._answers, self._report = client, answers, report
        self._paths = {each.name: [r.path for r in each.requests] for each in reads}
        self._posts = {shape(each.template): each for each in operations if each.method == "POST"}
        self._writes = [each for each in operations if each.method not in SAFE_METHODS]
        self._named, self._forbidden = named, leave_out
        self._trials = Trials(client, answers.samples)
        self.found: list[Operation] = []
        self.left_out: list[LeftOut] = []
        self.remaining: Counter[str] = Counter()

    def run(self) -> None:
        """Send the operations that add items to a list first, each with those that change them."""
        sendable = [each for each in self._writes if self._is_sendable(each)]
        creators = [each for each in sendable if each.method == "POST" and self._lists(each)]
        changes = [each for each in sendable if each not in creators]
        for creator in creators:
            above = shape(creator.template)
            own = [each for each in changes if shape_above(each.template) == above]
            self._explore(creator, sorted(own, key=lambda each: _ORDER[each.method]))
        known = {shape(creator.template) for creator in creators}
        for each in changes:
            if shape_above(each.template) not in known:
                self._leave_out(each, "no operation of the mix creates its object")

    def _is_sendable(self, operation: ApiOperation) -> bool:
        reason = (
            left_out_reason(operation, self._forbidden)
            or forbidden_reason(operation, self._named)
            or self._bulk_reason(operation)
        )
        if reason:
            self._leave_out(operation, reason)
        return not reason

    def _bulk_reason(self, operation: ApiOperation) -> str:
        is_list = not shape(operation.template).endswith("{}")
        has_items = shape(operation.template) in self._posts and operation.method != "POST"
        schema = operation.body.at("content").members()
        is_array = any(media.at("schema").at("type").text() == "array" for _, media in schema)
        return "bulk: it changes many objects" if (is_list and has_items) or is_array else ""

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
        self._report(f"{creator.name}: {'in the mix' if creation else 'left out'}")

    # Objects.

    def _create(self, operation: ApiOperation) -> Created | None:
        query = next(queries(operation, self._answers), None)
        if query is None:
            self._leave_out(operation, missing_values(operation, self._answers))
            return None
        if self._trials.has_unknown_body(operation):
            self._leave_out(operation, "its body is neither JSON nor a form")
            return None
        path = self._lists(operation)[0].partition("?")[0] + query
        found = self._trials.search(operation, [path] * _OBJECTS, *self._trials.drafts(operation))
        if found.last.problem:
            self._give_up(operation, path, found)
            return None
        self._add(operation, path, found)
        return Created(operation, path, found.fields, found.exchanges)

    def _change(self, operation: ApiOperation, creation: Created) -> None:
        """Send an operation to a created object; DELETE consumes it."""
        if operation.query or self._trials.has_unknown_body(operation):
            self._leave_out(operation, "needs a query, or a body that is neither JSON nor a form")
            return
        if not creation.exchanges:
            self._leave_out(operation, f"{creation.operation.name} created no object for it")
            return
        known = find_identifiers(operation.template, creation.exchanges[-1], self._answers)
        identifiers = [each for each in known if self._is_new(operation, each, creation)]
        path = object_path(creation.path, operation.template)
        for identifier in identifiers[:_MOST_IDENTIFIERS]:
            paths = [filled(path, each) for each in self._same(operation, identifier, creation)]
            paths = paths[-1:] if operation.method == "DELETE" else paths
            changes = self._trials.changes(operation, creation)
            found = self._trials.search(operation, paths, *changes)
            if found.last.problem:
                self._give_up(operation, paths[0], found)
            else:
                by = CreatedBy(operation=creation.operation.name, id_from=identifier.id_from)
                self._add(operation, path, found, by)
                if operation.method == "DELETE":
                    creation.exchanges.pop()
                return
        if not identifiers:
            name = creation.operation.name
            self._leave_out(operation, f"the answer of {name} has no id of a new object")

    def _same(
        self, operation: ApiOperation, identifier: Identifier, creation: Created
    ) -> list[Identifier]:
        """Return the ids of all created objects, from the same place of the answer."""
        return [
            each
            for exchange in creation.exchanges
            for each in find_identifiers(operation.template, exchange, self._answers)
            if each.id_from == identifier.id_from
        ]

    def _is_new(self, operation: ApiOperation, known: Identifier, creation: Created) -> bool:
        """Tell whether an id belongs to a new object: not to one that the target had before, nor
        the same one for each POST.
        """
        name = plain(known.id_from.rpartition(".")[2])
        items = self._answers.items_above(operation.template)
        if any(known.value == item.fields.get(name) for item in items):
            return False
        values = [
            [each.value for each in find_identifiers(operation.template, exchange, self._answers)]
            for exchange in creation.exchanges
        ]
        return sum(known.value in each for each in values) <= 1

    def _clean_up(self, creation: Created) -> None:
        above = shape(creation.operation.template) + "/{}"
        allowed = (each for each in self._writes if not left_out_reason(each, self._forbidden))
        delete = next(
            (o for o in allowed if o.method == "DELETE" and shape(o.template) == above), None
        )
        for exchange in reversed(creation.exchanges):
            is_deleted = delete is not None and self._is_deleted(delete, exchange, creation)
            if exchange.status == httpx.codes.CREATED and not is_deleted:
                self.remaining[creation.operation.name] += 1

    def _is_deleted(self, operation: ApiOperation, exchange: Exchange, creation: Created) -> bool:
        for identifier in find_identifiers(operation.template, exchange, self._answers):
            if self._is_new(operation, identifier, creation):
                path = filled(object_path(creation.path, operation.template), identifier)
                return not send(self._client, "DELETE", path).problem
        return False

    # What was found.

    def _add(
        self, operation: ApiOperation, path: str, found: Found, by: CreatedBy | None = None
    ) -> None:
        body = self._trials.type_of(operation)
        text = body.text(found.fields) if body and found.fields is not None else None
        operation_of_mix = Operation(
            name=operation.name,
            method=operation.method,
            weight=1,
            expect=found.exchanges[-1].status or 200,
            headers={"content-type": body.media_type} if body and text is not None else {},
            created_by=by,
            requests=(Request(path=path, body=text),),
        )
        self.left_out = [each for each in self.left_out if each.name != operation.name]
        self.found.append(operation_of_mix)

    def _give_up(self, operation: ApiOperation, path: str, found: Found) -> None:
        reason = failure_text(found.last, self._client.headers.values())
        self._leave_out(operation, f"{path} {reason}", found.last.status)
        # Without a second object to compare with, only its status says that it is new.
        created = [each for each in found.exchanges if each.status == httpx.codes.CREATED]
        if operation.method == "POST":
            self._clean_up(Created(operation, path, found.fields, created))

    def _leave_out(self, operation: ApiOperation, reason: str, status: int | None = None) -> None:
        self.left_out = [each for each in self.left_out if each.name != operation.name]
        self.left_out.append(LeftOut(name=operation.name, status=status, reason=reason))
