"""Finds addresses that a target answers, by sending requests and reading the answers."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import httpx

from load_lab.console import note
from load_lab.errors import LabError
from load_lab.targets.mix import LeftOut, Operation, Page, Request
from load_lab.targets.seen_pages import together
from load_lab.targets.sources.access import login_instead, require_success
from load_lab.targets.sources.answers import Answers
from load_lab.targets.sources.candidates import (
    ADDRESSES,
    Candidate,
    Finding,
    find_candidates,
    missing_values,
)
from load_lab.targets.sources.exchange import Exchange, send
from load_lab.targets.sources.openapi import ApiOperation
from load_lab.targets.sources.paths import Templates, shape
from load_lab.targets.sources.safety import (
    is_named,
    left_out_reason,
    stem_of_path,
    unsafe_reason,
)
from load_lab.targets.sources.session import Session

# An origin of values with so many failures more than successes is given up.
_MOST_FAILURES = 3


@dataclass
class _Entry:
    """An operation, and what was found out about it. `last` is the answer to `last_path`; successes
    and failures are counted by the origin of the values.
    """

    operation: ApiOperation
    may_write: bool
    paths: list[str] = field(default_factory=list)
    pages: list[Page | None] = field(default_factory=list)
    expect: int = 0
    sent: set[str] = field(default_factory=set)
    first: Exchange | None = None
    last: Exchange | None = None
    last_path: str = ""
    successes: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    unsafe: str = ""

    def is_given_up(self, origin: str) -> bool:
        """An operation without an answer is, too: its next request would take as long."""
        too_many = self.failures[origin] - self.successes[origin] >= _MOST_FAILURES
        return bool(self.unsafe) or too_many or (self.last is not None and self.last.status is None)


def explore(
    operations: Sequence[ApiOperation],
    client: httpx.Client,
    *,
    most: int = 20,
    seed: int = 0,
    named: Collection[str] = (),
    leave_out: Collection[str] = (),
    report: Callable[[str], None] = lambda _: None,
    answers: Answers | None = None,
    session: Session | None = None,
) -> tuple[tuple[Operation, ...], tuple[LeftOut, ...]]:
    """Return the operations that the target answers with 2xx, and those that are left out.

    Each address in the result was sent and answered with its operation's `expect`. An operation has
    up to `most` of them, spread evenly over those that were found; another `seed` finds others.
    The client has the target's address and headers. `named` are names, templates or ids of
    operations that are sent although a word in them says that they write, `leave_out` those that
    are not. `report` receives the progress, `answers` what the answers contain. An operation that
    ends the `session` is left out.

    Raises:
        UsageError: every answer was 401 or 403.
        LabError: the target accepts no connection, or answered no operation with 2xx, or the
            session ended for good.
    """
    reasons = unsent(operations, named, leave_out)
    if session:
        reasons |= session.find_page(each for each in operations if not reasons[each])
    entries = [_Entry(each, is_named(each, named)) for each in operations if not reasons[each]]
    exploration = _Exploration(operations, client, seed, report, answers, session)
    exploration.run(entries, most)
    left_out = [LeftOut(name=each.name, reason=why) for each, why in reasons.items() if why]
    left_out += [exploration.left_out(entry) for entry in entries if not entry.paths]
    if login := login_instead(entry.first for entry in entries if entry.first):
        if session:
            raise LabError(
                f"{login} The credentials of the target's file are wrong, or their session is over."
            )
        note(login)
    if not any(entry.paths for entry in entries):
        require_success(left_out, client, list(_credentials(entries)))
    return tuple(_operation(entry) for entry in entries if entry.paths), tuple(left_out)


def unsent(
    operations: Sequence[ApiOperation], named: Collection[str], leave_out: Collection[str]
) -> dict[ApiOperation, str]:
    """Return, for each operation, why an exploration does not send it; "" if it does."""
    return {
        each: left_out_reason(each, leave_out) or unsafe_reason(each, named) for each in operations
    }


def templates_of(operations: Sequence[ApiOperation]) -> Templates:
    """Return the templates, also of operations that are never sent: `/users/logout/` would fit
    `/users/{id}/`.
    """
    return Templates(operation.template for operation in operations)


class _Exploration:
    """Requests, one after the other, and what their answers contain."""

    def __init__(
        self,
        operations: Sequence[ApiOperation],
        client: httpx.Client,
        seed: int,
        report: Callable[[str], None],
        answers: Answers | None,
        session: Session | None,
    ) -> None:
        self._client, self._seed, self._report = client, seed, report
        self._session = session
        self._templates = templates_of(operations)
        self._answers = answers or Answers(self._templates, client.base_url)

    def run(self, entries: Sequence[_Entry], most: int) -> None:
        """Find one address of each operation first: its answer may have values for others."""
        ordered = sorted(entries, key=lambda entry: len(entry.operation.path))
        for goal in (1, most):
            while sum(self._extend(entry, goal) for entry in ordered):
                pass

    def left_out(self, entry: _Entry) -> LeftOut:
        name, last = entry.operation.name, entry.last
        if entry.unsafe and last:
            return LeftOut(name=name, status=last.status, reason=entry.unsafe)
        if last is None:
            return LeftOut(name=name, reason=missing_values(entry.operation, self._answers))
        required = (*entry.operation.headers, *entry.operation.cookies)
        is_refused = last.status is not None and 400 <= last.status < 500
        names = f"; it requires {', '.join(p.name for p in required)}" if required else ""
        reason = f"{entry.last_path} {last.problem}{names if is_refused else ''}"
        return LeftOut(name=name, status=last.status, reason=reason)

    def _extend(self, entry: _Entry, goal: int) -> bool:
        """Send requests until the operation has so many addresses. Return whether it has more."""
        before = len(entry.paths)
        for finding in find_candidates(entry.operation, self._answers, self._seed):
            self._try(entry, finding, goal)
            # Less certain values are not needed then.
            if entry.successes[finding.origin] and finding.origin != ADDRESSES:
                break
        if len(entry.paths) > before:
            self._report(f"{entry.operation.name}: {len(entry.paths)} of up to {goal} addresses")
        return len(entry.paths) > before

    def _try(self, entry: _Entry, finding: Finding, goal: int) -> None:
        for candidate in filter(lambda each: self._is_allowed(entry, each), finding.candidates):
            if len(entry.paths) >= goal or entry.is_given_up(finding.origin):
                return
            succeeded = self._send(entry, candidate)
            (entry.successes if succeeded else entry.failures)[finding.origin] += 1

    def _is_allowed(self, entry: _Entry, candidate: Candidate) -> bool:
        """Tell whether it is new, belongs to this operation, and has no value that writes: an
        answer may contain `/users/logout/`, which no document describes.
        """
        path = candidate.path.partition("?")[0]
        match = self._templates.match(path)
        template = entry.operation.template
        # An address in place of a parameter belongs to no other operation.
        is_address = template.startswith("{")
        is_own = match.template.shape == shape(template) if match else is_address
        is_safe = entry.may_write or not stem_of_path(candidate.path)
        is_here = candidate.path.startswith("/")
        return is_here and candidate.path not in entry.sent and is_own and is_safe

    def _send(self, entry: _Entry, candidate: Candidate) -> bool:
        operation = entry.operation
        exchange = send(
            self._client, operation.method, candidate.path, headers=operation.request_headers
        )
        if self._session and not entry.sent:
            entry.unsafe = self._session.check(operation)
        entry.sent.add(candidate.path)
        # Of a page alone, the body is compared with others.
        without_body = exchange if exchange.is_page else replace(exchange, body=b"")
        entry.first = entry.first or without_body
        entry.last, entry.last_path = exchange, candidate.path
        if entry.unsafe or exchange.status is None or exchange.problem:
            return False
        self._answers.learn(operation.template, candidate.values, exchange)
        entry.expect = entry.expect or exchange.status
        # A mix has one status for an operation.
        if exchange.status == entry.expect:
            entry.paths.append(candidate.path)
            entry.pages.append(exchange.page)
        return True


def _operation(entry: _Entry) -> Operation:
    """Return the operation for a mix: all have the same share."""
    return Operation(
        name=entry.operation.name,
        method=entry.operation.method,
        weight=1,
        expect=entry.expect,
        headers=entry.operation.request_headers,
        page=together(entry.pages),
        requests=tuple(Request(path=path) for path in entry.paths),
    )


def _credentials(entries: Sequence[_Entry]) -> Iterator[str]:
    """Yield the headers that may authenticate: what the target names, then the document."""
    challenges = (entry.last.challenge for entry in entries if entry.last)
    yield from (f"Authorization: {challenge} …" for challenge in challenges if challenge)
    for entry in entries:
        yield from entry.operation.credentials
