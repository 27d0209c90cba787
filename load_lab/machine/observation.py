"""One second of what was seen of a target: the mean of its looks."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from load_lab.machine.control_groups import GroupEvents
from load_lab.machine.sockets import Connection
from load_lab.machine.threads import ThreadState, Use

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


@dataclass(frozen=True)
class Signals:
    """A second that ends `at` (Unix time), from `samples` looks.

    `in_flight`: requests in the server, `uncertain` more perhaps; `queued`: connections that it has
    not accepted. `threads` and `sessions` by state, see processes.py and SessionState; empty if
    none was seen. `awaited`: requests in flight at each dependency; `sent`: segments sent to it per
    second. `cpu`, `busiest` (process) and `waited` (for a CPU) of the server's threads: seconds per
    second. `throttled`, `killed`: by service, see GroupEvents; per second.
    """

    at: float
    samples: int
    in_flight: float | None = None
    queued: float | None = None
    uncertain: float = 0.0
    threads: dict[str, float] = field(default_factory=dict)
    sessions: dict[str, float] = field(default_factory=dict)
    awaited: dict[str, float] = field(default_factory=dict)
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

    threads: Counter[ThreadState]
    sessions: Counter[SessionState] | None = None
    in_flight: int | None = None
    queued: int | None = None
    uncertain: int = 0
    connections: dict[str, list[Connection]] = field(default_factory=dict)

    def awaited(self) -> dict[str, int]:
        """Return the requests in flight at each dependency.

        Where it is not certain which came last, a request or its response, there are as many
        requests as threads that wait for another program.
        """
        certain = {
            name: sum(one.awaits is True for one in connections)
            for name, connections in self.connections.items()
        }
        more = max(self.threads["outside"] - sum(certain.values()), 0)
        for name, connections in self.connections.items():
            uncertain = min(sum(one.awaits is None for one in connections), more)
            certain[name] += uncertain
            more -= uncertain
        return certain


class Second:
    """Collects the looks of a second; `before` has the last look at each connection, since its
    segments are counted from its opening.
    """

    def __init__(
        self,
        use: Use,
        events: GroupEvents,
        before: dict[bytes, Connection] | None = None,
    ) -> None:
        self._began, self._use, self._events = time.monotonic(), use, events
        self._before = before if before is not None else {}
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
            for number, each in enumerate(connections):
                before = self._before.get(each.key)
                if before:
                    self._sent[name] += each.segments - before.segments
                    self._retransmits += each.retransmits - before.retransmits
                    connections[number] = _in_transit(each, before)
                self._before[each.key] = each

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
            threads=_means([look.threads for look in self._looks], get_args(ThreadState)),
            sessions=_means(sessions, get_args(SessionState)),
            awaited=_means([look.awaited() for look in self._looks], self._dependencies()),
            sent={name: round(self._sent[name] / seconds, 2) for name in self._dependencies()},
            cpu=round(max(sum(shares), 0.0), 3),
            busiest=round(max(shares, default=0.0), 3),
            waited=round(waited / seconds, 3),
            throttled=_rates(self._events.throttled, events.throttled, seconds),
            killed=_rates(self._events.killed, events.killed, seconds),
            faults=round(max(use.faults - self._use.faults, 0) / seconds, 2),
            retransmits=round(self._retransmits / seconds, 2),
        )

    def _dependencies(self) -> list[str]:
        return sorted({name for look in self._looks for name in look.connections})


def _in_transit(now: Connection, before: Connection) -> Connection:
    """Return the connection, uncertain if a response came since the look before and nothing was
    sent: more of it may be on its way.
    """
    comes = now.received > before.received and now.segments == before.segments
    return replace(now, awaits=None) if comes and not now.awaits else now


def _means(counts: Sequence[Mapping[Any, int]], names: Iterable[str]) -> dict[str, float]:
    """Return the mean of each name, 0 where it was not seen; nothing without counts."""
    if not counts:
        return {}
    return {
        str(name): round(sum(count.get(name, 0) for count in counts) / len(counts), 3)
        for name in names
    }


def _rates(
    before: Mapping[str, float], after: Mapping[str, float], seconds: float
) -> dict[str, float]:
    """Return by how much each grew per second; nothing for what is new."""
    grown = {name: max(n - before.get(name, n), 0.0) for name, n in after.items()}
    return {name: round(n / seconds, 3) for name, n in grown.items()}


def _mean(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None
