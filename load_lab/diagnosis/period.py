"""A period of a load: its rates, and the means of what was seen of the target during it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from load_lab.machine.cpu_use import CpuUse, busy_between
from load_lab.machine.observation import Signals
from load_lab.machine.threads import ThreadState
from load_lab.metrics.windows import WINDOW_SECONDS, Window

# Of the target's CPUs, and of worker slots.
FULL_CPU, FULL_SLOTS = 0.85, 0.9
# Full as well, if a thread waits for one all the time: threads that hand on a lock leave it idle.
_NEARLY_FULL_CPU, _ALWAYS_WAITED = 0.7, 1.0


@dataclass(frozen=True)
class Period:
    """Rates per second: `answered` requests, `dropped` arrivals. See `Signals` and `CpuUse`; times
    are seconds per second, requests and threads are means.
    """

    answered: float
    dropped: float
    looks: int
    cpu: CpuUse
    in_flight: float | None = None
    queued: float | None = None
    # Of those in flight, seen in the server; at most.
    in_server: float | None = None
    threads: dict[str, float] = field(default_factory=dict)
    active: float = 0.0
    working: float = 0.0
    blocked: float = 0.0
    sessions: dict[str, float] = field(default_factory=dict)
    awaited: dict[str, float] = field(default_factory=dict)
    files: dict[str, float] = field(default_factory=dict)
    locked: dict[str, float] = field(default_factory=dict)
    sent: dict[str, float] = field(default_factory=dict)
    server_cpu: float = 0.0
    busiest: float = 0.0
    waited: float = 0.0
    throttled: dict[str, float] = field(default_factory=dict)
    killed: dict[str, float] = field(default_factory=dict)
    faults: float = 0.0
    retransmits: float = 0.0
    # In any second.
    most_sessions: float = 0.0

    def session(self, state: str) -> float:
        return self.sessions.get(state, 0.0)

    def thread(self, *states: ThreadState) -> float:
        return sum(self.threads.get(state, 0.0) for state in states)

    @property
    def workers(self) -> float:
        """Return the threads that had something to do, and did not wait for requests."""
        return max(self.active - self.thread("loop", "unknown"), 0.0)

    @property
    def has_full_cpu(self) -> bool:
        """Return whether the target's CPUs are full."""
        waits = self.waited >= _ALWAYS_WAITED
        return self.cpu.target > (_NEARLY_FULL_CPU if waits else FULL_CPU)

    @property
    def all_sessions(self) -> float:
        return sum(self.sessions.values())


@dataclass(frozen=True)
class Rates:
    """What k6 counted in a period, per second. `in_system`: requests that were sent and not
    answered, on average from its second `counted_from` on.
    """

    answered: float
    dropped: float = 0.0
    in_system: float | None = None
    counted_from: float = 0.0


def rates_between(windows: Sequence[Window], start: float, end: float) -> Rates | None:
    """Return the mean rates of the windows between two seconds of a load; None without any."""
    inside = [w for w in windows if start <= w.end - WINDOW_SECONDS and w.end <= end]
    if not inside:
        return None
    return Rates(
        answered=fmean(w.achieved for w in inside),
        dropped=fmean(w.dropped for w in inside),
        in_system=fmean(_in_system(windows, w) for w in inside),
        counted_from=inside[0].end - start - 1,
    )


def _in_system(windows: Sequence[Window], last: Window) -> float:
    """Return the requests sent and not answered at the end of a window, by those before it that
    together cover the load from its first seconds on.
    """
    span = [w for w in windows if w.end <= last.end and (last.end - w.end) % WINDOW_SECONDS == 0]
    return max(sum(w.offered - w.dropped - w.achieved for w in span) * WINDOW_SECONDS, 0.0)


def period_between(
    rates: Rates, signals: Sequence[Signals], cpu: Sequence[CpuUse], start: float, end: float
) -> Period | None:
    """Return the period between two moments (Unix time); None if nothing was seen of it."""
    use = busy_between(cpu, start, end - 1)
    if use is None:
        return None
    seen = [one for one in signals if start < one.at <= end]
    if rates.in_system is not None:
        # Requests pile up: those seen are compared with those counted in the same seconds.
        same = [one for one in seen if one.at > start + rates.counted_from] or seen
    else:
        same = seen
    queued = _mean(one.queued for one in same)
    # k6's counts are exact. What is seen of connections is not, and lacks requests inside Nginx.
    in_flight = _mean(one.in_flight for one in same)
    in_server = _mean(
        None if one.in_flight is None else one.in_flight + one.uncertain for one in same
    )
    if rates.in_system is not None:
        in_flight = max(rates.in_system - (queued or 0.0), 0.0)
    return Period(
        answered=rates.answered,
        dropped=rates.dropped,
        looks=sum(one.samples for one in seen),
        cpu=use,
        in_flight=in_flight,
        queued=queued,
        in_server=in_server,
        threads=_means(seen, lambda one: one.threads),
        sessions=_means([one for one in seen if one.sessions], lambda one: one.sessions),
        awaited=_means(seen, lambda one: one.awaited),
        files=_means(seen, lambda one: one.files),
        locked=_means(seen, lambda one: one.locked),
        sent=_means(seen, lambda one: one.sent),
        throttled=_means(seen, lambda one: one.throttled),
        killed=_means(seen, lambda one: one.killed),
        most_sessions=max((sum(one.sessions.values()) for one in seen), default=0.0),
        **{
            name: _mean(getattr(one, field_name) for one in seen) or 0.0
            for name, field_name in _PLAIN.items()
        },
    )


_PLAIN = {
    "server_cpu": "cpu",
    **{
        name: name
        for name in (
            *("active", "working", "blocked", "busiest", "waited", "faults", "retransmits"),
        )
    },
}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _means(seen: Sequence[Signals], of: Callable[[Signals], dict[str, float]]) -> dict[str, float]:
    names = sorted({name for one in seen for name in of(one)})
    return {name: fmean(of(one).get(name, 0.0) for one in seen) for name in names}
