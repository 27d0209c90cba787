"""Recorded requests, collected into the operations of a mix."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple, cast, get_args
from urllib.parse import quote

from lab_settings.messages import shorten

from load_lab.errors import UsageError
from load_lab.targets.mix import SAFE_METHODS, LeftOut, Method, Operation, Request
from load_lab.targets.sources.paths import Template, Templates, guessed_template
from load_lab.targets.sources.safety import stem_of_path, stem_of_value, stem_of_view
from load_lab.targets.sources.secret_words import (
    credential_in_body,
    credential_in_target,
    credential_in_template,
)

_METHODS = frozenset(get_args(Method))
# Operations whose path no template names. More than these are values of a path, not operations.
_MOST_UNNAMED: Final = 1000
# Names of what was left out: counted at most, and reported at most.
_MOST_COUNTED, _MOST_REPORTED = 10_000, 200
_REASONS_SHOWN = 5
# Answers to a request for a part of a page, or for its changes: without these headers it is 200.
_UNCONDITIONAL_STATUS = {206: 200, 304: 200}
# Characters of a target that stay as they are; `%` belongs to what is encoded already.
_UNCHANGED = "%/:?@!$&'()*+,;=~[]"
_IS_ENCODED = re.compile(rf"[\w.{re.escape(_UNCHANGED)}-]*", re.ASCII)
_DELIMITERS = re.compile(r"[/?&=;]")


Headers = tuple[tuple[str, str], ...]


class Recorded(NamedTuple):
    """One request of a record. `target`: path and query string, as sent. `method`: "" if nothing
    that HTTP knows was sent.
    """

    method: str
    target: str
    status: int
    headers: Headers = ()
    body: str | None = None


def below(base_path: str, target: str) -> str:
    """Return what follows the path of the target's address, which each request of a load has."""
    path, question, query = target.partition("?")
    if base_path and f"{path}/".startswith(f"{base_path}/"):
        path = path.removeprefix(base_path) or "/"
    return path + question + query


def encoded(target: str) -> str:
    """Return the target with every character encoded that a request line cannot have."""
    # A log may have a million of them, and nearly all are encoded.
    if _IS_ENCODED.fullmatch(target):
        return target
    return quote(target, safe=_UNCHANGED, errors="surrogateescape")


class Traffic:
    """Sorts recorded requests into operations, with at most `most` addresses each. Its memory does
    not grow with their number.

    `named` are operations that the user allows, although a word in them says that they write.
    """

    def __init__(
        self,
        templates: Sequence[str | Template],
        *,
        most: int,
        writes: bool = False,
        named: Sequence[str] = (),
        leave_out: Sequence[str] = (),
    ) -> None:
        self._leave_out_names = frozenset(leave_out)
        self._templates = Templates(templates)
        self._most, self._writes, self._named = most, writes, tuple(named)
        self._groups: dict[tuple[str, Headers], _Group] = {}
        self._unnamed = 0
        self._left_out: dict[tuple[str, str], Counter[int]] = {}

    def add(self, recorded: Recorded) -> int | None:
        """Add a request; return the place of its operation, None if it was left out."""
        match = self._templates.find(recorded.target.partition("?")[0])
        template = match.template if match else None
        name = _name(recorded, template)
        key = (name, recorded.headers)
        reason = self._reason(recorded, name, template)
        if not reason and template is None and key not in self._groups:
            self._unnamed += 1
            if self._unnamed > _MOST_UNNAMED:
                reason = f"over {_MOST_UNNAMED} paths without a template: name the target's routes"
        if reason:
            self.leave_out(name, reason, recorded.status)
            return None
        if key not in self._groups:
            self._groups[key] = _Group(place=len(self._groups), most=self._most)
        self._groups[key].add(recorded)
        return self._groups[key].place

    def leave_out(self, name: str, reason: str, status: int = 0) -> None:
        """Count a request that is not in the mix."""
        key = (name, reason)
        if key not in self._left_out and len(self._left_out) >= _MOST_COUNTED:
            key = ("other paths", reason)
        self._left_out.setdefault(key, Counter())[status] += 1

    def operations(self) -> tuple[Operation, ...]:
        """Return the operations, each at its place.

        Raises:
            UsageError: there is none; the message has the most frequent reasons.
        """
        if not self._groups:
            first = self.left_out()[:_REASONS_SHOWN]
            reasons = "".join(f"\n  {shorten(each.name)}: {each.reason}" for each in first)
            raise UsageError(f"It has no request that a load can send.{reasons}")
        headers_of: dict[str, list[Headers]] = defaultdict(list)
        for name, headers in self._groups:
            headers_of[name].append(headers)
        return tuple(
            Operation(
                name=_distinct(name, headers, headers_of[name]),
                method=cast(Method, name.partition(" ")[0]),
                weight=group.count,
                expect=group.statuses.most_common(1)[0][0],
                headers=dict(headers),
                requests=tuple(group.requests()),
            )
            for (name, headers), group in self._groups.items()
        )

    def positions(self) -> list[list[int]]:
        """Return, for each operation and each of its addresses, which of the operation's requests
        it was, from 0.
        """
        return [group.positions() for group in self._groups.values()]

    def left_out(self) -> tuple[LeftOut, ...]:
        """Return what was left out, the most frequent first."""
        counts = sorted(self._left_out.items(), key=lambda item: -item[1].total())
        reported = [
            _left_out(name, reason, statuses)
            for (name, reason), statuses in counts[:_MOST_REPORTED]
        ]
        if rest := counts[_MOST_REPORTED:]:
            total = sum(statuses.total() for _, statuses in rest)
            reported.append(
                LeftOut(name=f"{len(rest):,} others", reason=f"rare: {total:,} requests")
            )
        return tuple(reported)

    def _reason(self, recorded: Recorded, name: str, template: Template | None) -> str | None:
        """Return why a request cannot be in the mix; None if it can."""
        method, target, status = recorded[:3]
        if self._leave_out_names & {name, name.partition(" ")[2]}:
            return "leave_out names it"
        if method not in _METHODS:
            return "no method of a mix"
        if method not in SAFE_METHODS and not self._writes:
            return "the method changes data"
        if not target.startswith("/"):
            return "no path of this server"
        if status // 100 != 2 and status != 304:
            return f"answered {status // 100}xx" if status > 0 else "answered nothing"
        if word := _credential(recorded, template):
            return f"it may have a credential: {word}"
        if method in SAFE_METHODS and (stem := self._stem(name, target, template)):
            return f"not safe: stem `{stem}`"
        return None

    def _stem(self, name: str, target: str, template: Template | None) -> str | None:
        if name in self._named:
            return None
        stems = (
            *map(stem_of_value, _DELIMITERS.split(target)),
            stem_of_path(name.partition(" ")[2]),
            *map(stem_of_view, template.views if template else ()),
        )
        return next(filter(None, stems), None)


class _Group:
    """The requests of one operation: their number, their statuses, and a sample in which each is
    equally likely (reservoir sampling), so that a frequent address is in it more often.
    """

    def __init__(self, *, place: int, most: int) -> None:
        self.place, self.count, self.statuses = place, 0, Counter[int]()
        self._most = most
        self._sample: list[tuple[int, str, str | None]] = []
        # The same sample of the same log.
        self._random = Random(place)  # noqa: S311 - no secret

    def add(self, recorded: Recorded) -> None:
        position, self.count = self.count, self.count + 1
        self.statuses[_UNCONDITIONAL_STATUS.get(recorded.status, recorded.status)] += 1
        slot = position if position < self._most else int(self._random.random() * self.count)
        if slot < self._most:
            self._sample[slot : slot + 1] = [(position, recorded.target, recorded.body)]

    def requests(self) -> list[Request]:
        return [Request(path=target, body=body) for _, target, body in self._distinct()]

    def positions(self) -> list[int]:
        return [position for position, _, _ in self._distinct()]

    def _distinct(self) -> list[tuple[int, str, str | None]]:
        """Return the sample in the order of the requests; once, if all are the same."""
        sample = sorted(self._sample, key=lambda item: item[0])
        return sample if len({item[1:] for item in sample}) > 1 else sample[:1]


def _name(recorded: Recorded, template: Template | None) -> str:
    if not recorded.method:
        return "no HTTP request"
    if template:
        return f"{recorded.method} {template.path_template}"
    path = re.split("[?;]", recorded.target, maxsplit=1)[0]
    return f"{recorded.method} {guessed_template(path) if path.startswith('/') else 'no path'}"


def _distinct(name: str, headers: Headers, others: Sequence[Headers]) -> str:
    """Return the name with the headers by which it differs from others of this name."""
    shared = set.intersection(*map(set, others))
    own = ", ".join(
        f"{header}: {value}" for header, value in headers if (header, value) not in shared
    )
    return f"{name} ({own or 'without headers'})" if len(others) > 1 else name


def _credential(recorded: Recorded, template: Template | None) -> str | None:
    return (
        credential_in_target(recorded.target)
        or (credential_in_template(template.path_template) if template else None)
        or (credential_in_body(recorded.body) if recorded.body else None)
    )


def _left_out(name: str, reason: str, statuses: Counter[int]) -> LeftOut:
    status, _ = statuses.most_common(1)[0]
    return LeftOut(
        name=name, status=status or None, reason=f"{reason} ({statuses.total():,} requests)"
    )
