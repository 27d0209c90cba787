"""One second of what was seen of a target: the mean of its looks."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from load_lab.machine.control_groups import GroupEvents
from load_lab.machine.sockets import Connection
from load_lab.machine.threads import ThreadState, Use
from load_lab.machine.waits import Waits

# What a session of Postgres does. `cpu`: active without a wait event. `holder`: idle in a
# transaction, so that it may hold locks. `lock`: waits for a row or a transaction; `table` and
# `advisory`: for a lock of that kind. `wal`: waits for a flush of the write-ahead log, its own
# or another session's.
SessionState = Literal[
    "cpu",
    "lock",
    "table",
    "advisory",
    "wal",
    "io",
    "internal",
    "sleep",
    "holder",
    "idle",
]
# The dependency whose sessions are looked at, too; and the service that the load is for.
POSTGRES, SERVER = "postgres", "server"
# Seconds that the server's threads wait for a CPU, per second: below it, CPUs are busy, but not
# what requests wait for.
LITTLE_WAIT = 0.15
_STEP_SECONDS, _LOOKS = 0.1, 10
# A thread that had no CPU for so long works on no request; one in a queue may wait for long.
_IDLE_SECONDS = 60
_MOST_NAMES = 8


@dataclass(frozen=True)
class Signals:
    """A second that ends `at` (Unix time), from `samples` looks.

    `in_flight`: requests in the server, `uncertain` more perhaps; `queued`: connections that it has
    not accepted. `threads` and `sessions` by state, see threads.py and SessionState; empty if none
    was seen. `active`: threads that ran in the last minute; `working` processes, and of them the
    `blocked` ones, of which no thread waits for requests.
    `awaited`: requests at each dependency and threads at other programs, `files`: threads at files,
    by name; `locked`: for how much of the second the server had locked a file; `sent`: segments
    sent to a dependency per second. `cpu`, `busiest` (process) and
    `waited` (for a CPU) of the server's threads: seconds per second. `throttled`, `killed`: by
    service, see GroupEvents; per second.
    """

    at: float
    samples: int
    in_flight: float | None = None
    queued: float | None = None
    uncertain: float = 0.0
    threads: dict[str, float] = field(default_factory=dict)
    active: float = 0.0
    working: float = 0.0
    blocked: float = 0.0
    sessions: dict[str, float] = field(default_factory=dict)
    awaited: dict[str, float] = field(default_factory=dict)
    files: dict[str, float] = field(default_factory=dict)
    locked: dict[str, float] = field(default_factory=dict)
    sent: dict[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    busiest: float = 0.0
    waited: float = 0.0
    throttled: dict[str, float] = field(default_factory=dict)
    killed: dict[str, float] = field(default_factory=dict)
    faults: float = 0.0
    retransmits: float = 0.0


@dataclass
class Look:
    """What was seen at a moment; None where it is not visible."""

    waits: Waits
    locked: Collection[str] = ()
    sessions: Counter[SessionState] | None = None
    in_flight: int | None = None
    queued: int | None = None
    uncertain: int = 0
    connections: dict[str, list[Connection]] = field(default_factory=dict)

    def awaited(self) -> Counter[str]:
        """Return the requests at each dependency: as many as connections that certainly await a
        response, or threads that wait for it. An event loop has no thread for a request.
        """
        certain = {
            name: sum(one.awaits is True for one in connections)
            for name, connections in self.connections.items()
        }
        return self.waits.awaited | Counter(certain)


@dataclass
class _Before:
    """The last look at each connection, since its segments are counted from its opening; and when
    each thread last ran.
    """

    connections: dict[bytes, Connection] = field(default_factory=dict)
    ran: dict[int, float] = field(default_factory=dict)


class Second:
    """Collects the looks of a second."""

    def __init__(
        self,
        use: Use,
        events: GroupEvents,
        before: _Before | None = None,
    ) -> None:
        self._began, self._use, self._events = time.monotonic(), use, events
        self._before = before or _Before()
        self._looks: list[Look] = []
        self._sent: Counter[str] = Counter()
        self._retransmits = 0

    def until_next_look(self) -> float:
        due = self._began + _STEP_SECONDS * (len(self._looks) + 1)
        return max(due - time.monotonic(), 0.001)

    @property
    def is_complete(self) -> bool:
        full = time.monotonic() - self._began >= _STEP_SECONDS * _LOOKS
        return bool(self._looks) and full

    def add(self, look: Look) -> None:
        self._looks.append(look)
        for name, connections in look.connections.items():
            for each in connections:
                before = self._before.connections.get(each.key)
                if before:
                    self._sent[name] += each.segments - before.segments
                    self._retransmits += each.retransmits - before.retransmits
                self._before.connections[each.key] = each

    def following(self, use: Use, events: GroupEvents) -> "Second":
        return Second(use, events, self._before)

    def signals(self, use: Use, events: GroupEvents) -> Signals:
        seconds = time.monotonic() - self._began
        shares = [
            (after - self._use.cpu.get(pid, after)) / seconds for pid, after in use.cpu.items()
        ]
        # An event loop may begin a thread for each request.
        waited = sum(
            max(after - self._use.waited.get(i, 0.0), 0.0) for i, after in use.waited.items()
        )
        sessions = [look.sessions for look in self._looks if look.sessions is not None]
        return Signals(
            at=time.time(),
            samples=len(self._looks),
            in_flight=_mean([look.in_flight for look in self._looks]),
            queued=_mean([look.queued for look in self._looks]),
            uncertain=_mean([look.uncertain for look in self._looks]) or 0.0,
            threads=_means([look.waits.threads for look in self._looks], get_args(ThreadState)),
            active=self._active(use),
            working=_mean([look.waits.working for look in self._looks]) or 0.0,
            blocked=_mean([look.waits.blocked for look in self._looks]) or 0.0,
            sessions=_means(sessions, get_args(SessionState)),
            awaited=_means_of_all([look.awaited() for look in self._looks]),
            files=_means_of_all([look.waits.files for look in self._looks]),
            locked=_means_of_all([dict.fromkeys(look.locked, 1) for look in self._looks]),
            sent={name: round(self._sent[name] / seconds, 2) for name in self._dependencies()},
            cpu=round(max(sum(shares), 0.0), 3),
            busiest=round(max(shares, default=0.0), 3),
            waited=round(waited / seconds, 3),
            throttled=_rates(self._events.throttled, events.throttled, seconds),
            killed=_rates(self._events.killed, events.killed, seconds),
            faults=round(max(use.faults - self._use.faults, 0) / seconds, 2),
            retransmits=round(self._retransmits / seconds, 2),
        )

    def _active(self, use: Use) -> int:
        """Return how many threads ran in the last minute, under the load."""
        now, ran = time.monotonic(), self._before.ran
        ran |= {i: now for i, runs in use.runs.items() if runs > self._use.runs.get(i, 0)}
        return sum(1 for i in use.runs if now - ran.get(i, 0.0) < _IDLE_SECONDS)

    def _dependencies(self) -> list[str]:
        return sorted({name for look in self._looks for name in look.connections})


def _means(counts: Sequence[Mapping[Any, int]], names: Iterable[str]) -> dict[str, float]:
    """Return the mean of each name, 0 where it was not seen; nothing without counts."""
    if not counts:
        return {}
    return {
        str(name): round(sum(count.get(name, 0) for count in counts) / len(counts), 3)
        for name in names
    }


def _means_of_all(counts: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """Return the mean of each name; those after the first ones together, since a crawler waits for
    a thousand hosts.
    """
    means = _means(counts, sorted({name for count in counts for name in count}))
    largest = sorted(means.items(), key=lambda item: -item[1])
    rest = sum(n for _, n in largest[_MOST_NAMES:])
    return dict(largest[:_MOST_NAMES]) | ({"others": round(rest, 3)} if rest else {})


def _rates(
    before: Mapping[str, float], after: Mapping[str, float], seconds: float
) -> dict[str, float]:
    """Return by how much each grew per second; nothing for what is new."""
    grown = {name: max(n - before.get(name, n), 0.0) for name, n in after.items()}
    return {name: round(n / seconds, 3) for name, n in grown.items()}


def _mean(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None
