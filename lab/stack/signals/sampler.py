"""Sample the signals of a target ten times a second under load, in a thread on the load's CPUs."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from lab.host.cpus import bind
from lab.stack.signals.nginx import NginxErrors
from lab.stack.signals.processes import Processes, Use, throttled_seconds
from lab.stack.signals.sessions import Sessions
from lab.stack.signals.tcp import Connection, TcpDiagnosis

# The dependency whose sessions are looked at, too.
POSTGRES = "postgres"
_STEP_SECONDS = 0.1
_SAMPLES_OF_SECOND = 10


@dataclass(frozen=True)
class Watched:
    """What is watched: the server's main processes and ports, the ports of what it depends on, by
    name, a connection to Postgres as its superuser, and Nginx's error log, where there are any.
    """

    server_pids: tuple[int, ...] = ()
    server_ports: tuple[int, ...] = ()
    dependencies: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    postgres: "psycopg.Connection[Any] | None" = None
    nginx_errors: Path | None = None


@dataclass(frozen=True)
class Signals:
    """One second of a target, the mean of `samples` looks; it ends `at` (Unix time).

    `in_flight`: requests in the server; `queued`: connections that it has not accepted. `threads`
    and `sessions` by state, see processes.py and sessions.py. `awaited`: requests in flight at each
    dependency; `sent`: segments sent to it per second. `cpu`, `busiest` (process) and `waited` (for
    a CPU) of the server's threads: seconds per second. `throttled`: by a quota, seconds per second.
    """

    at: float
    samples: int
    in_flight: float | None = None
    queued: float | None = None
    threads: dict[str, float] = field(default_factory=dict)
    sessions: dict[str, float] = field(default_factory=dict)
    awaited: dict[str, float] = field(default_factory=dict)
    sent: dict[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    busiest: float = 0.0
    waited: float = 0.0
    throttled: float = 0.0
    faults: float = 0.0
    retransmits: float = 0.0


class SignalSampler:
    """Sample inside a `with` block. `seconds` has the signals so far; `lost` says what is not
    visible from here, and why. `rejections` has, at the end, what Nginx refused, by reason.
    """

    def __init__(
        self,
        watched: Watched,
        cpus: set[int],
        publish: Callable[[Signals], None] = lambda _second: None,
    ) -> None:
        self._watched, self._cpus = watched, cpus
        # In another thread: a slow receiver must not delay the next look.
        self._publishing = ThreadPoolExecutor(1, initializer=bind, initargs=(cpus,))
        self._publish = publish
        self.seconds: list[Signals] = []
        # CPU seconds per second that this took.
        self.cost = 0.0
        self.lost: list[str] = []
        self.rejections: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "SignalSampler":
        # Connections open before the load: afterwards the target may have none left.
        self._processes = Processes(self._watched.server_pids)
        self._processes.refresh()
        self._tcp = self._open_tcp()
        self._sessions = Sessions(self._watched.postgres) if self._watched.postgres else None
        self._errors = NginxErrors(log) if (log := self._watched.nginx_errors) else None
        self._find_lost()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._publishing.shutdown(cancel_futures=True)
        if self._errors:
            self.rejections = dict(self._errors.counts())
        for opened in (self._tcp, self._sessions):
            if opened:
                opened.close()

    def _open_tcp(self) -> TcpDiagnosis | None:
        with suppress(OSError):
            tcp = TcpDiagnosis()
            self._connections(tcp, self._watched.server_ports)
            return tcp
        return None

    def _find_lost(self) -> None:
        if not self._watched.server_ports:
            self.lost.append("requests in flight (connections of containers are not visible)")
        elif self._tcp is None:
            self.lost.append("requests in flight (the kernel tells nothing of TCP connections)")
        if not self._processes.pids:
            self.lost.append("threads (the processes of the server are not visible)")
        elif not set(self._processes.states()) - {"unknown"}:
            self.lost.append("what threads wait for (only root may see it: run `lab` as root)")
        if self._sessions is None:
            self.lost.append("what Postgres's sessions wait for (no connection to it from here)")

    def _sample(self) -> None:
        bind(self._cpus)
        started = time.monotonic()
        second = _Second(self._processes.use(), self._throttled())
        while not self._stop.wait(second.until_next_look()):
            second.look(self._look())
            if second.is_complete:
                self.seconds.append(second.signals(self._processes.use(), self._throttled()))
                self._publishing.submit(self._publish, self.seconds[-1])
                # Workers may have been added or replaced.
                self._processes.refresh()
                second = second.following(self._processes.use())
                self.cost = time.thread_time() / (time.monotonic() - started)

    def _throttled(self) -> float:
        pids = self._watched.server_pids
        return throttled_seconds(pids[0]) if pids else 0.0

    def _look(self) -> "_Look":
        tcp, watched = self._tcp, self._watched
        look = _Look(self._processes.states())
        if self._sessions:
            look.sessions = self._sessions.states()
        if tcp and watched.server_ports:
            with suppress(OSError):
                found = self._connections(tcp, watched.server_ports)
                look.queued = sum(map(tcp.accept_queue, watched.server_ports))
                look.in_flight = max(sum(each.awaits for each in found) - look.queued, 0)
                look.connections = {
                    name: self._connections(tcp, ports)
                    for name, ports in watched.dependencies.items()
                }
        return look

    def _connections(self, tcp: TcpDiagnosis, ports: Sequence[int]) -> list[Connection]:
        return [each for port in ports for each in tcp.connections_to(port)]


@dataclass
class _Look:
    threads: Counter[Any]
    sessions: Counter[Any] | None = None
    in_flight: int | None = None
    queued: int | None = None
    connections: dict[str, list[Connection]] = field(default_factory=dict)


class _Second:
    """Collects the looks of a second."""

    def __init__(
        self, use: Use, throttled: float, before: "dict[bytes, Connection] | None" = None
    ) -> None:
        self._began, self._use, self._throttled = time.monotonic(), use, throttled
        self._looks: list[_Look] = []
        # The last look at each connection, since segments are counted from its opening.
        self._before = before if before is not None else {}
        self._sent: Counter[str] = Counter()
        self._retransmits = 0

    def until_next_look(self) -> float:
        due = self._began + _STEP_SECONDS * (len(self._looks) + 1)
        return max(due - time.monotonic(), 0.001)

    @property
    def is_complete(self) -> bool:
        full = time.monotonic() - self._began >= _STEP_SECONDS * _SAMPLES_OF_SECOND
        return bool(self._looks) and full

    def look(self, look: _Look) -> None:
        self._looks.append(look)
        for name, connections in look.connections.items():
            for each in connections:
                before = self._before.get(each.key)
                if before:
                    self._sent[name] += each.segments - before.segments
                    self._retransmits += each.retransmits - before.retransmits
                self._before[each.key] = each

    def signals(self, use: Use, throttled: float) -> Signals:
        seconds = time.monotonic() - self._began
        shares = [
            (after - self._use.by_process.get(pid, after)) / seconds
            for pid, after in use.by_process.items()
        ]
        self._throttled, before = throttled, self._throttled
        return Signals(
            at=time.time(),
            samples=len(self._looks),
            in_flight=_mean([each.in_flight for each in self._looks]),
            queued=_mean([each.queued for each in self._looks]),
            threads=self._means([each.threads for each in self._looks]),
            sessions=self._means([each.sessions for each in self._looks if each.sessions]),
            awaited=self._awaited(),
            sent={name: round(count / seconds, 2) for name, count in self._sent.items()},
            cpu=round(max(sum(shares), 0.0), 3),
            busiest=round(max(shares, default=0.0), 3),
            waited=round(max(use.waited - self._use.waited, 0.0) / seconds, 3),
            throttled=round((throttled - before) / seconds, 3),
            faults=round(max(use.faults - self._use.faults, 0) / seconds, 2),
            retransmits=round(self._retransmits / seconds, 2),
        )

    def following(self, use: Use) -> "_Second":
        return _Second(use, self._throttled, self._before)

    def _awaited(self) -> dict[str, float]:
        names = {name for look in self._looks for name in look.connections}
        return {
            name: round(
                sum(each.awaits for look in self._looks for each in look.connections.get(name, ()))
                / len(self._looks),
                3,
            )
            for name in sorted(names)
        }

    def _means(self, counts: Sequence[Counter[Any]]) -> dict[str, float]:
        total = sum(counts, Counter[Any]())
        return {str(name): round(count / len(counts), 3) for name, count in sorted(total.items())}


def _mean(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None
