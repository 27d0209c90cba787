"""Finds addresses that a target answers, by sending requests and reading the answers."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import httpx

from load_lab.console import note
from load_lab.errors import LabError
from load_lab.targets.mix import SAFE_METHODS, LeftOut, Operation, Page, Request
from load_lab.targets.seen_pages import together
from load_lab.targets.sources.described import ApiOperation, Outcomes, divided
from load_lab.targets.sources.exchange import Exchange, Tries, send
from load_lab.targets.sources.known_values import KnownValues
from load_lab.targets.sources.paths import Template, Templates, shape
from load_lab.targets.sources.safety import READS, Safety, stem_of_path
from load_lab.targets.sources.session import Session, login_instead, require_success
from load_lab.targets.sources.values import (
    ADDRESSES,
    Candidate,
    find_candidates,
    missing_values,
)

# An origin of values with so many failures more than successes is given up.
_MOST_FAILURES = 3
# Seconds for which the end of an exploration waits, if a target asks for it.
_LONGEST_WAIT = 5


def explore(
    operations: Sequence[ApiOperation],
    client: httpx.Client,
    *,
    most: int = 20,
    seed: int = 0,
    safety: Safety = READS,
    known: KnownValues | None = None,
    session: Session | None = None,
) -> Outcomes:
    """Return, for each operation that reads, what the target answers with 2xx, or why it is left
    out; and those that write, unless `safety` lets them be sent.

    Each address in the result was sent and answered with its operation's `expect`. An operation has
    up to `most` of them, spread evenly over those that were found; another `seed` finds others.
    The client has the target's address and headers. `known` receives what the answers contain. An
    operation that ends the `session` is left out.

    Raises:
        UsageError: every answer was 401 or 403.
        LabError: the target accepts no connection, or answered no operation with 2xx, or the
            session ended for good.
    """
    exploration = _Exploration(operations, client, safety, known, session)
    reasons = {each: safety.reason(each) for each in operations}
    sent = [each for each in operations if not reasons[each] and each.method in SAFE_METHODS]
    if session:
        reasons |= session.find_page(sent)
    entries = [_Entry(each) for each in sent if not reasons[each]]
    exploration.run(entries, most, seed)
    outcomes: Outcomes = {
        each: LeftOut(name=each.name, reason=why) for each, why in reasons.items() if why
    }
    outcomes |= {each.operation: exploration.outcome(each) for each in entries}
    if login := login_instead(each.first for each in entries if each.first):
        if session:
            raise LabError(
                f"{login} The credentials of the target's file are wrong, or their session is over."
            )
        note(login)
    found, left_out = divided(outcomes)
    if not found:
        require_success(left_out, client, list(_credentials(entries)))
    return outcomes


def templates_of(operations: Sequence[ApiOperation]) -> Templates:
    """Return the templates, also of operations that are never sent: `/users/logout/` would fit
    `/users/{id}/`.
    """
    return Templates(map(_template, operations))


def _template(operation: ApiOperation) -> Template:
    return Template(operation.method, operation.template, dict(operation.patterns))


@dataclass
class _Entry:
    """An operation, and what was found out about it: the answer to its first request; what was
    tried, of which all that is accepted has the status `expect`; its pages; and the refusal that
    tells most, with its address.
    """

    operation: ApiOperation
    tries: Tries[Candidate] = field(default_factory=Tries)
    pages: list[Page | None] = field(default_factory=list)
    sent: set[str] = field(default_factory=set)
    expect: int = 0
    first: Exchange | None = None
    refusal: tuple[str, Exchange] | None = None
    unsafe: str = ""
    later: tuple[Candidate, float] | None = None


class _Exploration:
    """Requests, one after the other, and what their answers contain."""

    def __init__(
        self,
        operations: Sequence[ApiOperation],
        client: httpx.Client,
        safety: Safety,
        known: KnownValues | None,
        session: Session | None,
    ) -> None:
        self._client, self._safety, self._session = client, safety, session
        self._templates = templates_of(operations)
        self._known = known or KnownValues(self._templates, client.base_url)

    def run(self, entries: Sequence[_Entry], most: int, seed: int) -> None:
        """Find one address of each operation first: its answer may have values for others."""
        ordered = sorted(entries, key=lambda entry: len(entry.operation.path))
        for goal in (1, most):
            while sum(self._extend(entry, goal, seed) for entry in ordered):
                pass
        self._repeat([entry for entry in entries if not entry.tries.accepted and entry.later])

    def outcome(self, entry: _Entry) -> Operation | LeftOut:
        """Return the operation for a mix, where all have the same share, or why it is none."""
        operation, paths = entry.operation, [each.path for each in entry.tries.accepted]
        if entry.tries.accepted:
            return Operation(
                name=operation.name,
                method=operation.method,
                weight=1,
                expect=entry.expect,
                headers=operation.request_headers,
                page=together(entry.pages),
                requests=tuple(Request(path=path) for path in paths),
            )
        if entry.unsafe and entry.first:
            return LeftOut(name=operation.name, status=entry.first.status, reason=entry.unsafe)
        if entry.refusal is None:
            return LeftOut(name=operation.name, reason=missing_values(operation, self._known))
        address, refusal = entry.refusal
        required = ", ".join(p.name for p in (*operation.headers, *operation.cookies))
        is_refused = refusal.status is not None and 400 <= refusal.status < 500
        names = f"; it requires {required}" if required and is_refused else ""
        reason = f"{address} {refusal.problem}{names}"
        return LeftOut(name=operation.name, status=refusal.status, reason=reason)

    def _repeat(self, entries: Sequence[_Entry]) -> None:
        """Send again what the target asked for later: it makes a file in the background."""
        if entries:
            time.sleep(max(entry.later[1] for entry in entries if entry.later))
        for entry in entries:
            address = [entry.later[0]] if entry.later else []
            entry.tries.run(partial(self._send, entry), address, enough=1, most_failures=99)

    def _extend(self, entry: _Entry, goal: int, seed: int) -> bool:
        """Send requests until the operation has so many addresses. Return whether it has more."""
        before = len(entry.tries.accepted)
        for origin, candidates in find_candidates(entry.operation, self._known, seed):
            allowed = (each for each in candidates if self._is_allowed(entry, each))
            send_one = partial(self._send, entry)
            entry.tries.run(
                send_one, allowed, enough=goal, most_failures=_MOST_FAILURES, origin=origin
            )
            # Less certain values are not needed then.
            if entry.tries.has_accepted(origin) and origin != ADDRESSES:
                break
        return len(entry.tries.accepted) > before

    def _is_allowed(self, entry: _Entry, candidate: Candidate) -> bool:
        """Tell whether it is new, belongs to this operation, and has no value that writes: an
        answer may contain `/users/logout/`, which no document describes.
        """
        path = candidate.path.partition("?")[0]
        match = self._templates.match(path)
        template = entry.operation.template
        # An address in place of a parameter belongs to no other operation.
        is_address = template.startswith("{")
        fits = _template(entry.operation).fits(candidate.values)
        # No template may match a value that has a slash.
        is_own = is_address or (fits and (not match or match.template.shape == shape(template)))
        is_safe = self._safety.allows(entry.operation) or not stem_of_path(candidate.path)
        is_here = candidate.path.startswith("/")
        return is_here and candidate.path not in entry.sent and is_own and is_safe

    def _send(self, entry: _Entry, candidate: Candidate) -> Exchange:
        operation, is_first = entry.operation, not entry.sent
        exchange = send(
            self._client, operation.method, candidate.path, headers=operation.request_headers
        )
        entry.sent.add(candidate.path)
        if is_first:
            # Of a page alone, the body is compared with others.
            entry.first = exchange if exchange.is_page else replace(exchange, body=b"")
            entry.unsafe = self._session.check(operation) if self._session else ""
            entry.tries.is_over = bool(entry.unsafe)
        if exchange.problem:
            before = entry.refusal
            if before is None or _rank(exchange) < _rank(before[1]):
                entry.refusal = (candidate.path, exchange)
            # No other address has this method, or leads elsewhere.
            leads_there_too = (
                before and exchange.location and exchange.location == before[1].location
            )
            is_final = exchange.status == httpx.codes.METHOD_NOT_ALLOWED or leads_there_too
            entry.tries.is_over |= bool(is_final)
            if exchange.retry_after is not None and exchange.retry_after <= _LONGEST_WAIT:
                entry.later = entry.later or (candidate, exchange.retry_after)
        elif not entry.unsafe:
            self._known.learn(operation.template, candidate.values, exchange)
            entry.expect = entry.expect or exchange.status or 0
            if exchange.status != entry.expect:
                return replace(exchange, problem="a mix has one status for an operation")
            entry.pages.append(exchange.page)
        return exchange


def _rank(refusal: Exchange) -> int:
    """Return how little an answer tells: a 404 may be due to a wrong value, others are not."""
    match refusal.status:
        case None:
            return 0
        case 404:
            return 3
        case 401 | 403:
            return 2
        case _:
            return 1


def _credentials(entries: Sequence[_Entry]) -> Iterator[str]:
    """Yield the headers that may authenticate: what the target names, then the document."""
    challenges = (each.tries.last.challenge for each in entries if each.tries.last)
    yield from (f"Authorization: {challenge} …" for challenge in challenges if challenge)
    for each in entries:
        yield from each.operation.credentials
