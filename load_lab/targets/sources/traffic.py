"""The requests of a record, collected into the operations of a mix."""

import re
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Final, cast
from urllib.parse import quote, urlsplit

from lab_settings.messages import shorten

from load_lab.errors import UsageError
from load_lab.targets.mix import Arrival, LeftOut, Method, Mix, Operation, Request
from load_lab.targets.sources.described import Headers, Observed
from load_lab.targets.sources.paths import Template, Templates, guessed_template
from load_lab.targets.sources.safety import READS, Safety

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
_DEFAULT_PORTS = {"http": 80, "https": 443}


def collect(
    source: str,
    record: Iterable[Observed | LeftOut],
    templates: Sequence[str | Template] = (),
    *,
    most: int = 100,
    safety: Safety = READS,
) -> Mix:
    """Return the mix of a record: the weight of an operation is the number of its requests, of
    which at most `most` are drawn evenly. A path without a template is named by its shape. Requests
    with a time are the mix's arrivals, each with the address that was drawn next before it.

    Raises:
        UsageError: it has no request that a load can send; the message has the most frequent
            reasons.
    """
    traffic = _Traffic(Templates(templates), most, safety)
    for each in record:
        traffic.add(each)
    operations, left_out = traffic.operations(), traffic.left_out()
    if not operations:
        reasons = "".join(f"\n  {shorten(o.name)}: {o.reason}" for o in left_out[:_REASONS_SHOWN])
        raise UsageError(f"{source}: It has no request that a load can send.{reasons}")
    arrivals = tuple(traffic.arrivals())
    return Mix(source=source, operations=operations, left_out=left_out, arrivals=arrivals)


def host_of(address: str) -> str | None:
    """Return host and port of an address, without the port that its scheme implies; None if it is
    none of HTTP.
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return None
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return name if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{name}:{port}"


def encoded(target: str) -> str:
    """Return the target with every character encoded that a request line cannot have."""
    # A log may have a million of them, and nearly all are encoded.
    if _IS_ENCODED.fullmatch(target):
        return target
    return quote(target, safe=_UNCHANGED, errors="surrogateescape")


class _Traffic:
    """Sorts requests into operations. Its memory does not grow with their number, but for times."""

    def __init__(self, templates: Templates, most: int, safety: Safety) -> None:
        self._templates, self._most, self._safety = templates, most, safety
        self._groups: dict[tuple[str, Headers], _Group] = {}
        self._unnamed = 0
        self._left_out: dict[tuple[str, str], Counter[int]] = {}
        # Of each request with a time, the place of its operation, too.
        self._times, self._places = array("d"), array("L")

    def add(self, each: Observed | LeftOut) -> None:
        if isinstance(each, LeftOut):
            self._leave_out(each.name, each.reason, each.status or 0)
            return
        match = self._templates.find(each.target.partition("?")[0])
        template = match.template if match else None
        name = _name(each, template)
        key = (name, each.headers)
        reason = self._safety.reason_of_record(each, name, template)
        if not reason and template is None and key not in self._groups:
            self._unnamed += 1
            if self._unnamed > _MOST_UNNAMED:
                reason = f"over {_MOST_UNNAMED} paths without a template: name the target's routes"
        if reason:
            self._leave_out(name, reason, each.status)
            return
        if key not in self._groups:
            self._groups[key] = _Group(place=len(self._groups), most=self._most)
        self._groups[key].add(each)
        if each.time is not None:
            self._times.append(each.time)
            self._places.append(self._groups[key].place)

    def _leave_out(self, name: str, reason: str, status: int) -> None:
        key = (name, reason)
        if key not in self._left_out and len(self._left_out) >= _MOST_COUNTED:
            key = ("other paths", reason)
        self._left_out.setdefault(key, Counter())[status] += 1

    def operations(self) -> tuple[Operation, ...]:
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

    def arrivals(self) -> Iterator[Arrival]:
        """Yield the arrivals in the order of their times. Those of a record of whole seconds are
        spread evenly over each.
        """
        positions, counts = [each.positions() for each in self._groups.values()], Counter[int]()
        requests = []
        for place in self._places:
            requests.append(max(bisect_right(positions[place], counts[place]) - 1, 0))
            counts[place] += 1
        are_whole = all(map(float.is_integer, self._times))
        # Nginx's workers write their lines in any order.
        order = sorted(range(len(self._times)), key=self._times.__getitem__)
        sizes, seen = Counter(self._times), Counter[float]()
        for i in order:
            time = self._times[i]
            at = time - self._times[order[0]]
            if are_whole:
                at += seen[time] / sizes[time]
                seen[time] += 1
            yield Arrival(at=at, operation=self._places[i], request=requests[i])

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

    def add(self, request: Observed) -> None:
        position, self.count = self.count, self.count + 1
        self.statuses[_UNCONDITIONAL_STATUS.get(request.status, request.status)] += 1
        slot = position if position < self._most else int(self._random.random() * self.count)
        if slot < self._most:
            self._sample[slot : slot + 1] = [(position, request.target, request.body)]

    def requests(self) -> list[Request]:
        return [Request(path=target, body=body) for _, target, body in self._distinct()]

    def positions(self) -> list[int]:
        """Return, for each address, which of the operation's requests it was, from 0."""
        return [position for position, _, _ in self._distinct()]

    def _distinct(self) -> list[tuple[int, str, str | None]]:
        """Return the sample in the order of the requests; once, if all are the same."""
        sample = sorted(self._sample, key=lambda item: item[0])
        return sample if len({item[1:] for item in sample}) > 1 else sample[:1]


def _name(request: Observed, template: Template | None) -> str:
    if not request.method:
        return "no HTTP request"
    if template:
        return f"{request.method} {template.path_template}"
    path = re.split("[?;]", request.target, maxsplit=1)[0]
    return f"{request.method} {guessed_template(path) if path.startswith('/') else 'no path'}"


def _distinct(name: str, headers: Headers, others: Sequence[Headers]) -> str:
    """Return the name with the headers by which it differs from others of this name."""
    shared = set.intersection(*map(set, others))
    own = ", ".join(
        f"{header}: {value}" for header, value in headers if (header, value) not in shared
    )
    return f"{name} ({own or 'without headers'})" if len(others) > 1 else name


def _left_out(name: str, reason: str, statuses: Counter[int]) -> LeftOut:
    status, _ = statuses.most_common(1)[0]
    return LeftOut(
        name=name, status=status or None, reason=f"{reason} ({statuses.total():,} requests)"
    )
