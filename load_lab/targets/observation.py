"""Which processes serve an address: found by its port, and by what the app says of its database.

The port's listener, its parent for as long as that holds the same port (gunicorn's master), and the
listeners that their tree was seen connected to on this machine: database, Redis. An app may open a
connection for each request, so what was seen once stays. The address or published port of a
container leads to the container's main process.
"""

import ipaddress
import os
import socket
import time
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from load_lab.machine.sockets import network_of, peers_of
from load_lab.stack.http import address
from load_lab.targets.containers import Container, connections_of, running_containers
from load_lab.targets.databases import Declared, Place, first_address

# The name of the service that answers the address itself.
SERVER = "target"
# Programs that hand connections from a published port to a container.
_PORT_PROXIES = {"docker-proxy", "rootlesskit"}


# Programs that are an app's database, or stand in front of one; and where they listen.
_DATABASES = {
    *("postgres", "pgbouncer", "pgcat", "odyssey", "pgpool", "mysqld", "mariadbd", "mongod"),
    *("oracle", "sqlservr"),
}
_DATABASE_PORTS = {5432, 6432, 3306, 1521, 1433, 27017}
_DATABASE_SOCKETS = (".s.PGSQL.", "mysql")
_STEP_SECONDS = 0.005


@dataclass(frozen=True)
class _Service:
    name: str
    process: psutil.Process
    in_container: bool = False


@dataclass
class Sightings:
    """What a target's server was seen connected to (`places`), and what that was connected to
    (`onward`), in this order; the names of the services there, by place and by process, which stay;
    and what the target says itself. Threads of a load share it.
    """

    places: dict[Place, None] = field(default_factory=dict)
    onward: dict[Place, None] = field(default_factory=dict)
    names: dict[tuple[Place, str], str] = field(default_factory=dict)
    pids: dict[int, str] = field(default_factory=dict)
    declared: Declared | None = None
    # The environments of the variants that were asked for it.
    asked: set[Hashable] = field(default_factory=set)

    def declare(self, declared: Declared) -> None:
        self.declared = self.declared.with_others(declared) if self.declared else declared
        self.places.update(dict.fromkeys((*declared.databases, *declared.caches)))

    @property
    def has_database(self) -> bool:
        """Return whether the database is known, or that there is none."""
        if self.declared and self.declared.is_complete:
            return True
        return bool(self._seen_databases)

    @property
    def databases(self) -> set[Place]:
        """Return where the databases are, as far as they are known."""
        declared = self.declared.databases if self.declared else ()
        return {*declared, *self._seen_databases}

    @property
    def _seen_databases(self) -> set[Place]:
        by_name = (place for place, name in tuple(self.names) if name in _DATABASES)
        return {*by_name, *filter(_is_database, self._all)}

    @property
    def _all(self) -> tuple[Place, ...]:
        return tuple(dict.fromkeys((*tuple(self.places), *tuple(self.onward))))

    def _look(self, pids: Collection[int]) -> bool:
        """Add what processes of this network are connected to at this moment; return whether that
        is new.
        """
        known = len(self.places)
        self.places.update(dict.fromkeys(_host_places(pids)))
        return len(self.places) > known

    def look_for_database(self, url: str, pids: Collection[int], seconds: float) -> None:
        """Look at the server's processes until a database is known, for at most so long: the
        connections of an app that opens one for each request last milliseconds.
        """
        end = time.monotonic() + seconds
        while pids and not self.has_database and time.monotonic() < end:
            if self._look(pids):
                # What is there, a database or another service?
                observe(url, self)
            time.sleep(_STEP_SECONDS)

    def unseen(self, where: str) -> list[str]:
        """Return which services are not, or not for certain, among those that are observed, and
        what to do; `where` is the target file's path.
        """
        machine = _Machine()
        named = (*self.declared.databases, *self.declared.caches) if self.declared else ()
        texts = []
        for place in self._all:
            # Of another place, what listened there may have ended.
            if machine.services_at(place) or not (_is_database(place) or place in named):
                continue
            if machine.has(place):
                texts.append(f"{place}: its processes are not visible. Run `lab` as root")
            else:
                texts.append(f"the service at {place}: it is on another host")
        if not self.has_database:
            why = [f"{each}: its host is not known here" for each in self._unknown]
            why += [
                f"{each} has connections that end too soon to see whose" for each in machine.ended
            ]
            why += [self.declared.why] if self.declared and self.declared.why else []
            reasons = f" ({'; '.join(why)})" if why else ""
            texts.append(
                f"a database, if the app has one{reasons}. Name it in {where}: postgres = "
                '"postgresql://USER:${PASSWORD}@HOST:PORT/NAME", or manage'
            )
        return texts

    @property
    def _unknown(self) -> tuple[str, ...]:
        return self.declared.unknown if self.declared else ()


def observe(url: str, seen: Sightings | None = None) -> dict[str, int]:
    """Return the main process of each service by name, those included that were seen before; none
    if the address is of another host, or its processes are another user's.
    """
    machine, seen = _Machine(), seen or Sightings()
    host, port = address(url)
    found: dict[str, int] = {}
    # A proxy is connected to the server, the server to its database.
    waiting = [Place(_plain(ip), port) for ip in first_address(host)]
    for place in waiting:
        for service in machine.services_at(place):
            if service.process.pid in found.values():
                continue
            places = dict.fromkeys(sorted(_connected_places(service)))
            if not found:
                seen.places.update(places)
                found[SERVER] = service.process.pid
                waiting += [*tuple(seen.places), *tuple(seen.onward)]
            else:
                seen.onward.update(places)
                waiting += list(places)
                found[_name(service, place, seen)] = service.process.pid
    return found


def is_here(url: str) -> bool:
    """Return whether an address is of this machine, or of a container that runs here."""
    machine, (host, port) = _Machine(), address(url)
    places = [Place(_plain(ip), port) for ip in first_address(host)]
    return any(machine.has(place) or machine.services_at(place) for place in places)


def dependencies_of(pid: int, seen: Sightings) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return address and port of what a server is, or was seen, connected to, by the name of the
    service there, or by the address of another host. The kernel tells of TCP only what is awaited.
    """
    machine = _Machine()
    found: dict[str, list[tuple[str, int]]] = {}
    with suppress(psutil.Error, OSError):
        seen.places.update(dict.fromkeys(sorted(_connected_places(_server(pid)))))
        for place in tuple(seen.places):
            if place.port:
                services = machine.services_at(place)
                name = services[0].name if services else str(place)
                found.setdefault(name.removesuffix("-server"), []).append((place.host, place.port))
    return {name: tuple(places) for name, places in found.items()}


def count_database_connections(pid: int, seen: Sightings) -> int | None:
    """Return how many connections a server has to its databases; None if none of them is known."""
    databases = seen.databases
    if not databases:
        return None
    return sum(place in databases for place in _connected_places(_server(pid), ended=False))


def server_processes(pid: int | None) -> list[int]:
    """Return the process and its children; none in a container, whose connections of the last
    minute are seen anyway.
    """
    with suppress(psutil.Error, OSError):
        if pid and not (server := _server(pid)).in_container:
            return [each.pid for each in _tree(server.process)]
    return []


def _server(pid: int) -> _Service:
    in_container = network_of(pid) != network_of(os.getpid())
    return _Service(SERVER, psutil.Process(pid), in_container=in_container)


def _is_database(place: Place) -> bool:
    if place.port:
        return place.port in _DATABASE_PORTS
    return Path(place.host).name.startswith(_DATABASE_SOCKETS)


class _Machine:
    """Who listens on this machine; each source is read once, and only if it is needed."""

    @cached_property
    def _own_addresses(self) -> set[str]:
        return {each.address for all_ in psutil.net_if_addrs().values() for each in all_}

    @cached_property
    def _connections(self) -> Sequence[Any]:
        return psutil.net_connections("all")

    @cached_property
    def _listeners(self) -> dict[int, psutil.Process]:
        """A process that listens on each port, of those whose processes are visible."""
        found = {}
        for connection in self._connections:
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.pid:
                with suppress(psutil.Error):
                    found[connection.laddr.port] = psutil.Process(connection.pid)
        return found

    @cached_property
    def _unix_servers(self) -> Mapping[str, set[int]]:
        """The processes that have a Unix socket of each path: a server, and its children."""
        found: dict[str, set[int]] = {}
        for connection in self._connections:
            if connection.family == socket.AF_UNIX and connection.laddr and connection.pid:
                found.setdefault(_real(connection.laddr), set()).add(connection.pid)
        return found

    @cached_property
    def ended(self) -> list[str]:
        """The databases here to which programs had connections in the last minute: the kernel keeps
        the client's end, but not whose it was.
        """
        places = {
            Place(_plain(each.raddr.ip), each.raddr.port)
            for each in self._connections
            if each.status == psutil.CONN_TIME_WAIT and each.raddr
        }
        named = [
            (place, service) for place in sorted(places) for service in self.services_at(place)
        ]
        return [
            f"{service.name} at {place}" for place, service in named if service.name in _DATABASES
        ]

    def has(self, place: Place) -> bool:
        """Return whether the place is on this machine."""
        return not place.port or _is_loopback(place.host) or place.host in self._own_addresses

    @cached_property
    def _containers(self) -> list[Container]:
        return running_containers()

    def services_at(self, place: Place) -> list[_Service]:
        """Return the service that listens there, and the proxy in front of a container's port."""
        if not place.port:
            return self._services_at_path(place.host)
        if not self.has(place):
            return _services(c for c in self._containers if place.host in c.addresses)
        listener = self._listeners.get(place.port)
        with suppress(psutil.Error):
            if listener and listener.name() not in _PORT_PROXIES:
                top = _top(listener, place.port)
                return [_Service(top.name(), top)]
            # Without a proxy, the kernel forwards the port, and nobody listens.
            proxy = [_Service(listener.name(), listener)] if listener else []
            services = _services(c for c in self._containers if place.port in c.ports)
            return [*services, *proxy] if services else []
        return []

    def _services_at_path(self, path: str) -> list[_Service]:
        pids = self._unix_servers.get(_real(path), set())
        with suppress(psutil.Error):
            for process in map(psutil.Process, sorted(pids)):
                if process.ppid() not in pids:
                    return [_Service(process.name(), process)]
        return []


def _services(containers: Iterable[Container]) -> list[_Service]:
    with suppress(psutil.Error):
        return [_Service(c.name, psutil.Process(c.pid), in_container=True) for c in containers]
    return []


def _real(path: str) -> str:
    """Return the path of a socket without symbolic links: /var/run is one."""
    return str(Path(path).parent.resolve() / Path(path).name)


def _plain(ip: str) -> str:
    """Return the IPv4 address that a dual-stack socket shows as an IPv6 address."""
    with suppress(ValueError):
        mapped = getattr(ipaddress.ip_address(ip), "ipv4_mapped", None)
        return str(mapped or ip)
    return ip


def _is_loopback(ip: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(ip).is_loopback
    return False


def _top(process: psutil.Process, port: int) -> psutil.Process:
    """Return the highest ancestor that holds the same port: a server's workers inherit it."""
    with suppress(psutil.Error):
        while (parent := process.parent()) and port in _ports(parent):
            process = parent
    return process


def _ports(process: psutil.Process) -> set[int]:
    return {c.laddr.port for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN}


def _connected_places(service: _Service, *, ended: bool = True) -> list[Place]:
    """Return what the service's processes are connected to, once for each connection; its own
    clients are not. In a container, those that `ended` in the last minute count, too.
    """
    pid = service.process.pid
    if not service.in_container:
        return _host_places([each.pid for each in _tree(service.process)])
    known = list(connections_of(pid, ended=ended))
    own_ports = {each.local_port for each in known if each.remote is None}
    remotes = [each.remote for each in known if each.remote and each.local_port not in own_ports]
    places = [Place(_plain(ip), port) for ip, port in remotes]
    # A container's loopback is its own.
    return [place for place in places if not _is_loopback(place.host)]


def _host_places(pids: Collection[int]) -> list[Place]:
    # Only Linux tells it so, and not in every sandbox.
    with suppress(OSError, AttributeError):
        return [Place(_plain(host), port) for host, port in peers_of(pids)]
    known = [each for pid in pids for each in _tcp_connections(pid)]
    own_ports = {each.laddr.port for each in known if each.status == psutil.CONN_LISTEN}
    return [
        Place(_plain(each.raddr.ip), each.raddr.port)
        for each in known
        if each.status == psutil.CONN_ESTABLISHED and each.laddr.port not in own_ports
    ]


def _tcp_connections(pid: int) -> Sequence[Any]:
    with suppress(psutil.Error):
        return psutil.Process(pid).net_connections("tcp")
    return ()


def _tree(root: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return [root, *root.children(recursive=True)]
    return []


def _name(service: _Service, place: Place, seen: Sightings) -> str:
    """Return the name of a service: with a number if another one has it."""
    name, pid = service.name, service.process.pid
    taken = {*seen.names.values(), SERVER}
    numbers = (name if n == 1 else f"{name}-{n}" for n in range(1, len(taken) + 2))
    free = next(candidate for candidate in numbers if candidate not in taken)
    known = seen.names.get((place, name)) or seen.pids.get(pid) or free
    return seen.pids.setdefault(pid, seen.names.setdefault((place, name), known))
