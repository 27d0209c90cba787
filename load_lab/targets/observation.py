"""Which processes serve an address: found by its port, without configuration.

The port's listener, its parent for as long as that holds the same port (gunicorn's master), and the
listeners that their tree is connected to on this machine: database, Redis. The address or published
port of a container leads to the container's main process.
"""

import ipaddress
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import psutil

from load_lab.machine.sockets import network_of
from load_lab.stack.http import address
from load_lab.targets.containers import Connection, Container, connections_of, running_containers

# The name of the service that answers the address itself.
SERVER = "target"
# Programs that hand connections from a published port to a container.
_PORT_PROXIES = {"docker-proxy", "rootlesskit"}


@dataclass(frozen=True, order=True)
class _Place:
    """Where a service listens, as its client sees it."""

    ip: str
    port: int


@dataclass(frozen=True)
class _Service:
    name: str
    process: psutil.Process
    in_container: bool = False


def observe(url: str) -> dict[str, int]:
    """Return the main process of each service by name; none if the address is of another host, or
    its processes are another user's.
    """
    machine = _Machine()
    host, port = address(url)
    found: dict[str, int] = {}
    # A proxy is connected to the server, the server to its database.
    waiting = [_Place(ip, port) for ip in _first_address(host)]
    for place in waiting:
        for service in machine.services_at(place):
            if service.process.pid not in found.values():
                found[_free_name(service.name if found else SERVER, found)] = service.process.pid
                waiting += sorted(_connected_places(service))
    return found


def dependencies_of(pid: int) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return address and port of what a server is connected to, by the name of the service there,
    or by the address of another host.
    """
    machine = _Machine()
    found: dict[str, list[tuple[str, int]]] = {}
    with suppress(psutil.Error, OSError):
        in_container = network_of(pid) != network_of(os.getpid())
        server = _Service(SERVER, psutil.Process(pid), in_container=in_container)
        for place in sorted(_connected_places(server)):
            services = machine.services_at(place)
            name = services[0].name if services else f"{place.ip}:{place.port}"
            found.setdefault(name.removesuffix("-server"), []).append((place.ip, place.port))
    return {name: tuple(places) for name, places in found.items()}


class _Machine:
    """Who listens on this machine; each source is read once, and only if it is needed."""

    @cached_property
    def _own_addresses(self) -> set[str]:
        return {each.address for all_ in psutil.net_if_addrs().values() for each in all_}

    @cached_property
    def _listeners(self) -> dict[int, psutil.Process]:
        """A process that listens on each port, of those whose processes are visible."""
        found = {}
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.pid:
                with suppress(psutil.Error):
                    found[connection.laddr.port] = psutil.Process(connection.pid)
        return found

    @cached_property
    def _containers(self) -> list[Container]:
        return running_containers()

    def services_at(self, place: _Place) -> list[_Service]:
        """Return the service that listens there, and the proxy in front of a container's port."""
        if not _is_loopback(place.ip) and place.ip not in self._own_addresses:
            return _services(c for c in self._containers if place.ip in c.addresses)
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


def _services(containers: Iterable[Container]) -> list[_Service]:
    with suppress(psutil.Error):
        return [_Service(c.name, psutil.Process(c.pid), in_container=True) for c in containers]
    return []


def _first_address(host: str) -> list[str]:
    """Return the host's first address; none if the name is unknown."""
    with suppress(OSError):
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
        return [_plain(str(found[0][4][0]))]
    return []


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


def _connected_places(service: _Service) -> set[_Place]:
    """Return what the service's processes are connected to; its own clients are not."""
    pid = service.process.pid
    connections = connections_of(pid) if service.in_container else _connections(service.process)
    known = list(connections)
    own_ports = {each.local_port for each in known if each.remote is None}
    remotes = [each.remote for each in known if each.remote and each.local_port not in own_ports]
    places = {_Place(_plain(ip), port) for ip, port in remotes}
    # A container's loopback is its own.
    return {p for p in places if not (service.in_container and _is_loopback(p.ip))}


def _connections(root: psutil.Process) -> Iterator[Connection]:
    """Yield the established connections and the listening sockets of the tree."""
    for process in _tree(root):
        with suppress(psutil.Error):
            for each in process.net_connections("tcp"):
                if each.status == psutil.CONN_LISTEN:
                    yield Connection(each.laddr.port, None)
                elif each.status == psutil.CONN_ESTABLISHED and each.raddr:
                    yield Connection(each.laddr.port, (each.raddr.ip, each.raddr.port))


def _tree(root: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return [root, *root.children(recursive=True)]
    return []


def _free_name(name: str, taken: dict[str, int]) -> str:
    """Return the name, with a number if another service has it."""
    numbers = (name if n == 1 else f"{name}-{n}" for n in range(1, len(taken) + 2))
    return next(candidate for candidate in numbers if candidate not in taken)
