"""Which processes serve an address: found by its port, without configuration.

The port's listener, its parent for as long as that holds the same port (gunicorn's master), and the
listeners that their tree is connected to on this machine: database, Redis.
"""

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import suppress

import psutil

from lab.stack.http import address

# The name of the service that answers the address itself.
SERVER = "target"


def observe(url: str) -> dict[str, int]:
    """Return the main process of each service by name; none if the address is of another host, or
    its processes are another user's.
    """
    host, port = address(url)
    listeners = _listeners() if _is_here(host) else {}
    found: dict[str, int] = {}
    # A proxy is connected to the server, the server to its database.
    waiting = [port] if port in listeners else []
    for port in waiting:
        server = _top(listeners[port], port)
        if server.pid not in found.values():
            found[_free_name(server.name() if found else SERVER, found)] = server.pid
            waiting += sorted(_connected_ports(server) & listeners.keys())
    return found


def _is_here(host: str) -> bool:
    """Return whether the host's first address is one of this machine's."""
    with suppress(OSError, ValueError):
        address = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)[0][4][0]
        own = {a.address for each in psutil.net_if_addrs().values() for a in each}
        return ipaddress.ip_address(address).is_loopback or address in own
    return False


def _listeners() -> dict[int, psutil.Process]:
    """Return a process that listens on each port, of those whose processes are visible."""
    found = {}
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.pid:
            with suppress(psutil.Error):
                found[connection.laddr.port] = psutil.Process(connection.pid)
    return found


def _top(process: psutil.Process, port: int) -> psutil.Process:
    """Return the highest ancestor that holds the same port: a server's workers inherit it."""
    with suppress(psutil.Error):
        while (parent := process.parent()) and port in _ports(parent):
            process = parent
    return process


def _ports(process: psutil.Process) -> set[int]:
    return {c.laddr.port for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN}


def _connected_ports(root: psutil.Process) -> set[int]:
    """Return the ports on this machine that the tree is connected to."""
    return {
        connection.raddr.port
        for process in _tree(root)
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_ESTABLISHED
        and connection.raddr
        and _is_here(connection.raddr.ip)
    }


def _tree(root: psutil.Process) -> Iterator[psutil.Process]:
    for process in [root, *root.children(recursive=True)]:
        with suppress(psutil.Error):
            process.net_connections("tcp")
            yield process


def _free_name(name: str, taken: dict[str, int]) -> str:
    """Return the name, with a number if another service has it."""
    numbers = (name if n == 1 else f"{name}-{n}" for n in range(1, len(taken) + 2))
    return next(candidate for candidate in numbers if candidate not in taken)
