"""Where the requests in a server are: computing, or waiting for what. Divided by the rate, it is
how the time of one request is spent (Little's law).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from load_lab.diagnosis.period import FULL_SLOTS, Period
from load_lab.machine.observation import POSTGRES, SessionState

# `process`: a lock, a pool or a queue inside the server's processes. `network`: between the server
# and Postgres; `postgres`: in it or on the way, where its sessions are not seen. `outside`: for
# programs that are not known; `clients`: between them and a server that is not full, in the network
# or in Nginx.
Place = Literal[
    "cpu",
    "cpu wait",
    "process",
    "clients",
    "sleep",
    "file",
    "disk",
    "other",
    "network",
    "redis",
    "outside",
    "postgres",
    "postgres cpu",
    "postgres lock",
    "postgres table",
    "postgres advisory",
    "postgres wal",
    "postgres io",
    "postgres internal",
    "postgres sleep",
]
# For readers: what a request does there.
TITLES: dict[str, str] = {
    "cpu": "computes",
    "cpu wait": "waits for a CPU",
    "process": "waits inside the server: lock, pool, queue",
    "clients": "between the clients and the server, in the network or Nginx",
    "sleep": "sleeps",
    "file": "waits for a lock of a file",
    "disk": "waits for the disk",
    "other": "waits in another call of the kernel",
    "network": "in the network to and from Postgres",
    "postgres": "at Postgres, or on the way",
    "redis": "at Redis",
    "outside": "at another program",
    "postgres cpu": "Postgres computes",
    "postgres lock": "Postgres waits for a row's lock",
    "postgres table": "Postgres waits for a table's lock",
    "postgres advisory": "Postgres waits for an advisory lock",
    "postgres wal": "Postgres waits for its log",
    "postgres io": "Postgres waits for the disk",
    "postgres internal": "Postgres's sessions wait for each other",
    "postgres sleep": "sleeps in Postgres",
}
# The kernel's clock has steps of up to 10 ms: shorter requests are in the server more often than
# they are seen there. Seconds.
_SEEN_SURELY = 0.05
# Of the requests in flight: with more in the server, the others may be on their way to it.
_FEW_IN_SERVER = 0.5
# Postgres's places by the state of its sessions.
_OF_POSTGRES: dict[SessionState, Place] = {
    "cpu": "postgres cpu",
    "lock": "postgres lock",
    "table": "postgres table",
    "advisory": "postgres advisory",
    "wal": "postgres wal",
    "io": "postgres io",
    "internal": "postgres internal",
    "sleep": "postgres sleep",
}
COMPUTING: Final[tuple[Place, ...]] = ("cpu", "cpu wait", "postgres cpu")
LOCKS: Final[tuple[Place, ...]] = (
    "postgres lock",
    "postgres table",
    "postgres advisory",
    "postgres wal",
)
# Places that are states of threads.
_OF_THREADS: Final = ("sleep", "file", "disk", "other")


@dataclass(frozen=True)
class Split:
    """The mean number of requests at each place: of `busy` that the server works on, and those
    between it and the clients; and `waiting` for it to begin.
    """

    places: Mapping[Place, float]
    busy: float
    waiting: float

    @property
    def total(self) -> float:
        return sum(self.places.values())

    def share(self, *places: Place) -> float:
        return sum(self.places.get(place, 0.0) for place in places) / max(self.total, 1e-9)

    def milliseconds(self, rate: float) -> dict[Place, float]:
        """Return how long one request is at each place, at `rate` answers per second."""
        return {place: 1000 * count / rate for place, count in self.places.items()} if rate else {}


def split_of(period: Period, slots: int | None) -> Split:
    """Return where the requests were; `slots` is how many the server works on at once, if that is
    limited.
    """
    busy, waiting, between = _busy(period, slots)
    places: dict[Place, float] = {"cpu": period.server_cpu, "cpu wait": period.waited}
    places |= _postgres(period)
    places["redis"] = period.awaited.get("redis", 0.0)
    others = (n for name, n in period.awaited.items() if name not in (POSTGRES, "redis"))
    places["outside"] = sum(others)
    places["clients"] = period.thread("sending")
    for state in _OF_THREADS:
        places[state] = period.thread(state)
    places = _at_most(places, busy)
    places["process"] = max(busy - sum(places.values()), 0.0)
    places["clients"] += between
    return Split(places, busy, waiting)


def _busy(period: Period, slots: int | None) -> tuple[float, float, float]:
    """Return the requests that the server works on, those that wait for it to begin, and those
    between it and the clients.
    """
    queued = period.queued or 0.0
    if period.in_flight is None:
        seen = period.thread("running", "outside", "sending", *_OF_THREADS)
        return max(seen, period.server_cpu), queued, 0.0
    between = _between(period, slots)
    inside = period.in_flight - between
    if slots and queued >= 1:
        # Nobody accepts them, so all are busy, although a client may have given up.
        inside = max(inside, slots)
    busy = min(inside, slots) if slots else inside
    return busy, queued + inside - busy, between


def _between(period: Period, slots: int | None) -> float:
    """Return the requests that k6 sent and the server does not have, or no longer. Those in front
    of a full server wait for it.
    """
    flight, seen = period.in_flight or 0.0, period.in_server
    if seen is None or flight <= _SEEN_SURELY * period.answered:
        return 0.0
    is_full = (
        period.has_full_cpu
        or (slots is not None and seen >= FULL_SLOTS * slots)
        or (period.queued or 0.0) >= 1
    )
    return 0.0 if is_full or seen > _FEW_IN_SERVER * flight else flight - seen


def _postgres(period: Period) -> dict[Place, float]:
    """Return the requests at Postgres by what its sessions do, and those on the way to or from it.

    A session is counted exactly; of connections, it is not always certain that they await.
    """
    active = {place: period.session(state) for state, place in _OF_POSTGRES.items()}
    total, awaited = sum(active.values()), period.awaited.get(POSTGRES, 0.0)
    # A role without pg_monitor sees those of its own only.
    if not any(period.sessions.values()):
        return {"postgres": awaited}
    return {**active, "network": max(awaited - total, 0.0)}


def _at_most(places: dict[Place, float], busy: float) -> dict[Place, float]:
    """Scale the places down if they add up to more than the requests: they are seen by different
    means, at different moments.
    """
    total = sum(places.values())
    if total <= busy or not total:
        return places
    return {place: count * busy / total for place, count in places.items()}
