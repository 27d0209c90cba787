"""Look at a target ten times a second under load, in a thread on the load generator's CPUs."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg

from load_lab.machine import nginx_log
from load_lab.machine.control_groups import ControlGroups
from load_lab.machine.cpu_use import LOOK_AGAIN_SECONDS
from load_lab.machine.cpus import bind
from load_lab.machine.file_locks import FileLocks
from load_lab.machine.logged_errors import NONE_LOGGED, LoggedErrors, logged_errors
from load_lab.machine.logs import Lines, NewText
from load_lab.machine.observation import SERVER, Look, Second, Signals
from load_lab.machine.sessions import Sessions
from load_lab.machine.sockets import Connection, TcpDiagnosis
from load_lab.machine.threads import Processes
from load_lab.machine.waits import Dependencies, SocketNames, Waits

_END_SECONDS = 3
_NGINX = "nginx"


@dataclass(frozen=True)
class Watched:
    """What is watched: the server's main processes and ports, how what it depends on is found, how
    to connect to Postgres (it may raise psycopg.Error), and how to read what the logs of server,
    Postgres and Nginx got during the load. `services`: main processes of the target's other
    services; `network_pids`: in whose network namespaces the connections are, if not in this one;
    `database`: whose sessions count,
    if not all. `look` is called with the server's processes ten times a second: their connections
    may last milliseconds; `find_unseen` names, at the end, the services that do not count.
    """

    server_pids: tuple[int, ...] = ()
    server_ports: tuple[int, ...] = ()
    find_dependencies: Callable[[], Dependencies] = dict
    connect_postgres: "Callable[[], psycopg.Connection[Any] | None]" = lambda: None
    logs: Mapping[str, NewText] = field(default_factory=dict)
    services: Mapping[str, int] = field(default_factory=dict)
    network_pids: tuple[int, ...] = ()
    database: str = ""
    look: Callable[[Sequence[int]], None] = lambda _pids: None
    find_unseen: Callable[[], Sequence[str]] = tuple


@dataclass
class SignalSampler:
    """Sample inside a `with` block. `seconds` has the signals so far; `lost` says what is not
    visible from here, and why. `rejections` has, at the end, what Nginx refused, by reason, and
    `logged` the errors in the other logs; `cost` the CPU seconds per second that its threads took.
    `publish` is called with each second.
    """

    watched: Watched
    cpus: set[int]
    publish: Callable[[Signals], None] = lambda _second: None
    seconds: list[Signals] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    rejections: dict[str, int] = field(default_factory=dict)
    logged: LoggedErrors = NONE_LOGGED
    cost: float = 0.0
    _publishing_cost: float = 0.0

    def __enter__(self) -> "SignalSampler":
        # What is opened now stays: afterwards the target may have no connection left.
        with ExitStack() as opened:
            self._processes = Processes(self.watched.server_pids)
            self._processes.refresh()
            own = dict(zip((SERVER,), self.watched.server_pids, strict=False))
            self._groups = ControlGroups.of(own | dict(self.watched.services))
            self._dependencies = self.watched.find_dependencies()
            self._tcp = _open_tcp(self.watched.network_pids)
            if self._tcp:
                opened.callback(self._tcp.close)
            self._locks = FileLocks()
            self._names = SocketNames(self._tcp, self.watched.server_ports)
            self._sessions = self._open_sessions()
            if self._sessions:
                opened.callback(self._sessions.close)
            self._find_lost()
            # A slow receiver must not delay the next look.
            self._publishing = ThreadPoolExecutor(1, initializer=bind, initargs=(self.cpus,))
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._sample, daemon=True)
            self._thread.start()
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_END_SECONDS)
        self._publishing.shutdown(wait=False, cancel_futures=True)
        with self._opened:
            self._read_logs()

    def _read_logs(self) -> None:
        logs = {name: Lines(text) for name, text in self.watched.logs.items()}
        others = ((name, lines) for name, lines in logs.items() if name != _NGINX)
        counts = nginx_log.rejections(logs.get(_NGINX, ()))
        self.rejections = {str(reason): count for reason, count in counts.items()}
        self.logged = logged_errors(others)
        if SERVER not in logs:
            self.lost.append(
                "errors in the app's log (it is read if the lab starts the app; in a target file: "
                "[start])"
            )
        self.lost += [
            f"errors in the rest of the log of {name}, which is too long"
            for name, lines in logs.items()
            if lines.is_cut
        ]

    def _open_sessions(self) -> Sessions | None:
        why = "no connection; in a target file: postgres"
        try:
            connection = self.watched.connect_postgres()
            if connection:
                return Sessions(connection, self.cpus, self.watched.database)
        except psycopg.Error as error:
            # Its connections may be used up: a load that needs none is possible all the same.
            why = str(error).strip().partition("\n")[0]
        self.lost.append(f"what Postgres's sessions wait for ({why})")
        return None

    def _find_lost(self) -> None:
        if not self.watched.server_ports:
            self.lost.append("requests in flight (the server's connections are not visible)")
        elif self._tcp is None:
            self.lost.append(
                "requests in flight (the kernel tells nothing of TCP connections; only root sees "
                "those in containers)"
            )
        if not self._processes.pids:
            self.lost.append("threads (the processes of the server are not visible)")
        elif all(each.state == "unknown" for each in self._processes.threads()):
            self.lost.append("what threads wait for (only root may see it: run `lab` as root)")

    def _sample(self) -> None:
        bind(self.cpus)
        started = time.monotonic()
        second = Second(self._processes.use(), self._groups.events())
        while not self._stop.wait(second.until_next_look()):
            second.add(self._look())
            if second.is_complete:
                events = self._groups.events()
                self.seconds.append(second.signals(self._processes.use(), events))
                self._publishing.submit(self._publish, self.seconds[-1])
                self._look_again()
                second = second.following(self._processes.use(), events)
                asking = self._sessions.cost if self._sessions else 0.0
                used = time.thread_time() + asking + self._publishing_cost
                self.cost = used / (time.monotonic() - started)

    def _publish(self, second: Signals) -> None:
        self.publish(second)
        self._publishing_cost = time.thread_time()

    def _look_again(self) -> None:
        """Look for workers that were added or replaced, and for what the load has connected to."""
        self._processes.refresh()
        if len(self.seconds) in LOOK_AGAIN_SECONDS:
            self._dependencies = {**self._dependencies, **self.watched.find_dependencies()}

    def _look(self) -> Look:
        look = Look(Waits(), self._locks.held(self._processes.pids))
        with suppress(OSError):
            look.waits = self._names.waits(self._processes.threads(), self._dependencies)
        if self._sessions:
            look.sessions = self._sessions.latest()
        if self._tcp and self.watched.server_ports:
            with suppress(OSError):
                ports = self.watched.server_ports
                look.queued = sum(map(self._tcp.accept_queue, ports))
                clients = _connections_to(self._tcp, [("", port) for port in ports])
                awaits = sum(one.awaits is True for one in clients)
                look.in_flight = max(awaits - look.queued, 0)
                look.uncertain = sum(one.awaits is None for one in clients)
                look.connections = {
                    name: _connections_to(self._tcp, places)
                    for name, places in self._dependencies.items()
                }
        if len(self.seconds) < LOOK_AGAIN_SECONDS[-1]:
            self.watched.look(self._processes.pids)
        return look


def _open_tcp(network_pids: Sequence[int]) -> TcpDiagnosis | None:
    # Only Linux has it, and not every sandbox.
    with suppress(OSError, AttributeError):
        tcp = TcpDiagnosis(network_pids)
        try:
            tcp.accept_queue(1)
        except OSError:
            tcp.close()
            raise
        return tcp
    return None


def _connections_to(tcp: TcpDiagnosis, places: Sequence[tuple[str, int]]) -> list[Connection]:
    return [each for address, port in places for each in tcp.connections_to(port, address)]
