"""The containers on this machine, as Docker describes them."""

import ipaddress
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from load_lab.stack.docker import is_process_of

_SERVICE_LABEL = "com.docker.compose.service"
# Of the kernel's tcp_states.h.
_ESTABLISHED, _TIME_WAIT, _LISTEN = "01", "06", "0A"


@dataclass(frozen=True)
class Container:
    """A running container: `ports` are those that it publishes on this machine."""

    name: str
    pid: int
    addresses: frozenset[str]
    ports: frozenset[int]


@dataclass(frozen=True)
class Connection:
    """A TCP connection, or a listening socket, whose `remote` is None."""

    local_port: int
    remote: tuple[str, int] | None


def connections_of(container_pid: int, *, ended: bool = True) -> Iterator[Connection]:
    """Yield the connections, also those that `ended` in the last minute, and the listening sockets
    of a container's network, which psutil does not read: it knows the network of this process only.
    """
    states = (_ESTABLISHED, _TIME_WAIT) if ended else (_ESTABLISHED,)
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            lines = Path(f"/proc/{container_pid}/net/{name}").read_text().splitlines()
            for _, local, remote, state, *_ in map(str.split, lines[1:]):
                if state == _LISTEN:
                    yield Connection(_place(local)[1], None)
                elif state in states:
                    yield Connection(_place(local)[1], _place(remote))


def _place(text: str) -> tuple[str, int]:
    """Return address and port. The kernel prints an address as 32-bit words in the machine's byte
    order, see proc_net_tcp.rst in its documentation.
    """
    address, port = text.split(":")
    words = (address[i : i + 8] for i in range(0, len(address), 8))
    octets = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    return str(ipaddress.ip_address(octets)), int(port, 16)


def running_containers() -> list[Container]:
    """Return the containers whose processes are visible; none without Docker or its rights.

    On macOS and Windows they run in a virtual machine, and their process ids mean nothing here.
    """
    found = map(_container, _inspect(_docker("ps", "--quiet", "--no-trunc").split()))
    return [container for container in found if container is not None]


def _docker(*argv: str) -> str:
    with suppress(OSError):
        return subprocess.run(["docker", *argv], capture_output=True, text=True, check=False).stdout
    return ""


def _inspect(ids: list[str]) -> list[dict[str, Any]]:
    # A container that ends in between is missing in the output.
    output = _docker("inspect", *ids) if ids else ""
    return list(json.loads(output)) if output.strip() else []


def _container(document: dict[str, Any]) -> Container | None:
    pid = document["State"]["Pid"]
    if not is_process_of(document["Id"], pid):
        return None
    network = document["NetworkSettings"]
    # An empty field can be null.
    labels, ports = document["Config"]["Labels"] or {}, network["Ports"] or {}
    published = [each for bindings in ports.values() for each in bindings or ()]
    return Container(
        labels.get(_SERVICE_LABEL) or document["Name"].lstrip("/"),
        pid,
        frozenset(
            each[key]
            for each in network["Networks"].values()
            for key in ("IPAddress", "GlobalIPv6Address")
            if each[key]
        ),
        frozenset(int(each["HostPort"]) for each in published),
    )
