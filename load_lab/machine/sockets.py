"""TCP connections with their times, from the kernel (sock_diag(7)).

A client's connection that sent later than it received awaits a response. So the requests in flight
to a server, a database or a cache are counted from outside, without its help. The kernel's clock
has steps of 1 to 10 ms: of what happens within one, it does not tell which came last.
"""

import ctypes
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

_SOCK_DIAG, _BY_FAMILY, _DUMP, _DONE, _ERROR = 4, 20, 0x301, 3, 2
_ESTABLISHED, _SYN_SENT, _CLOSE_WAIT, _LISTEN = 1, 2, 8, 10
# This end has closed it: FIN_WAIT1 and 2, LAST_ACK, CLOSING.
_CLOSED = (4, 5, 9, 11)
_INFO = 2
# unix_diag_req after nlmsghdr: family, protocol, padding; states, inode, what to show; cookie.
_UNIX_REQUEST = struct.Struct("=IHHII BBH III 8s")
# unix_diag_msg: family, type, state, padding; inode; cookie. Attributes: name, and peer's inode.
_UNIX_MESSAGE = struct.Struct("=BBBB I 8s")
_NAME, _PEER, _SHOW_NAME_AND_PEER = 0, 2, 1 | 4
# nlmsghdr and inet_diag_req_v2; its socket id is: ports, addresses, interface, cookie.
_REQUEST = struct.Struct("=IHHII BBBBI HH 16s16sI8s")
_HEADER = struct.Struct("=IHHII")
# inet_diag_msg: family, state, two bytes; ports; addresses, interface, cookie; timer, queues.
_MESSAGE = struct.Struct("=BBBB HH 16s16sI8s IIIII")
_ATTRIBUTE = struct.Struct("=HH")
# Of tcp_info: milliseconds since data was sent and received, total retransmissions, and segments
# with data, received and sent.
_SENT_AT, _RECEIVED_AT, _RETRANSMITS_AT, _SEGMENTS_IN_AT, _SEGMENTS_AT = 44, 52, 100, 152, 156
_BUFFER = 1 << 18
# Of setns(2).
_NETWORK = 0x40000000


@dataclass(frozen=True)
class Connection:
    """A client's connection; `awaits` a response, None if that is not certain. `segments` were sent
    since it was opened, `retransmits` of them again, and `received` ones came.
    """

    key: bytes
    awaits: bool | None
    segments: int
    retransmits: int
    received: int


@dataclass(frozen=True)
class End:
    """A socket: what it is connected to, and its own port; an address or path, "" if it listens, or
    is one of a pair. `closed`: by this end, after its last data.
    """

    peer: str
    peer_port: int = 0
    port: int = 0
    closed: bool = False


class TcpDiagnosis:
    """Asks the kernel about the network namespaces of processes; those in containers have another
    one, which only root sees. Raises OSError where it tells nothing, as in some sandboxes.
    """

    def __init__(self, pids: Iterable[int] = ()) -> None:
        namespaces = {network_of(pid): pid for pid in pids or (os.getpid(),)}
        self._sockets: list[socket.socket] = []
        try:
            self._sockets += map(_socket_of, namespaces.values())
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        for each in self._sockets:
            each.close()

    def connections_to(self, port: int, address: str = "") -> list[Connection]:
        """Return the clients' ends of the connections to a port, at any address without one."""
        return [
            _connection(body, number)
            for number, each in enumerate(self._sockets)
            for body in _dump(each, _ESTABLISHED, remote=port)
            if not address or _destination(body) == address
        ]

    def ends(self) -> dict[int, End]:
        """Return the sockets by their inodes: those of TCP, of UDP that are connected, and the
        clients' of Unix.
        """
        ends: dict[int, End] = {}
        for each in self._sockets:
            ends |= map(_end, _dump(each, _ESTABLISHED, _SYN_SENT, _CLOSE_WAIT, _LISTEN, *_CLOSED))
            ends |= map(_end, _dump(each, _ESTABLISHED, protocol=socket.IPPROTO_UDP))
            ends |= {inode: End(path) for inode, path in _unix_servers(each).items()}
        return ends

    def accept_queue(self, port: int) -> int:
        """Return the connections that wait for the server on a port to accept them, those included
        for which its queue is too short.
        """
        waiting = 0
        for each in self._sockets:
            waiting += sum(
                _MESSAGE.unpack_from(body)[11] for body in _dump(each, _LISTEN, local=port)
            )
            waiting += sum(1 for _ in _dump(each, _SYN_SENT, remote=port))
        return waiting

    def unanswered(self, port: int) -> set[bytes]:
        """Return the connections to a port on which a request may await its answer: those whose
        client has gone before, too.
        """
        left = {
            bytes([number]) + _MESSAGE.unpack_from(body)[9]
            for number, each in enumerate(self._sockets)
            for body in _dump(each, _CLOSE_WAIT, local=port)
        }
        return left | {each.key for each in self.connections_to(port) if each.awaits}


def peers_of(pids: Iterable[int]) -> list[tuple[str, int]]:
    """Return what processes of this network are connected to at this moment, once for each
    connection: address and port, or the path of a Unix socket and 0; their own clients are not. It
    takes less than a millisecond, so that it sees connections of a few.

    Raises:
        OSError, AttributeError: the kernel does not tell it.
    """
    with closing(_open()) as kernel:
        inodes = set(_inodes(pids))
        if not inodes:
            return []
        return [*_tcp_peers(kernel, inodes), *_unix_peers(kernel, inodes)]


def _inodes(pids: Iterable[int]) -> Iterator[int]:
    for pid in pids:
        with suppress(OSError):
            for file in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    link = os.readlink(file.path)  # noqa: PTH115 - quicker
                    if link.startswith("socket:["):
                        yield int(link[8:-1])


def _tcp_peers(kernel: socket.socket, inodes: set[int]) -> list[tuple[str, int]]:
    own = [
        (body, fields)
        for state in (_ESTABLISHED, _LISTEN)
        for body in _dump(kernel, state)
        if (fields := _MESSAGE.unpack_from(body))[-1] in inodes
    ]
    listening = {fields[4] for _, fields in own if fields[1] == _LISTEN}
    return [
        (_destination(body), socket.ntohs(fields[5]))
        for body, fields in own
        if fields[1] == _ESTABLISHED and fields[4] not in listening
    ]


def _unix_peers(kernel: socket.socket, inodes: set[int]) -> list[tuple[str, int]]:
    """Return the paths of the other ends."""
    servers = _unix_servers(kernel)
    return [(servers[inode], 0) for inode in inodes & servers.keys() if servers[inode]]


def _unix_servers(kernel: socket.socket) -> dict[int, str]:
    """Return what clients are connected to, by the inodes of their sockets: a path, which is the
    name of the server's end; "" for that end itself, and for a pair without names.
    """
    request = _UNIX_REQUEST.pack(
        *(_UNIX_REQUEST.size, _BY_FAMILY, _DUMP, 0, 0),
        *(socket.AF_UNIX, 0, 0, 1 << _ESTABLISHED, 0, _SHOW_NAME_AND_PEER, b"\xff" * 8),
    )
    names, peers = dict[int, str](), dict[int, int]()
    for body in _messages(kernel, request):
        inode = _UNIX_MESSAGE.unpack_from(body)[4]
        for kind, value in _attributes(body[_UNIX_MESSAGE.size :]):
            if kind == _NAME and value.startswith(b"/"):
                names[inode] = os.fsdecode(value.rstrip(b"\0"))
            elif kind == _PEER:
                peers[inode] = int.from_bytes(value, sys.byteorder)
    # One that is not accepted yet has a peer without an inode.
    known = names.keys() | peers.keys()
    clients = {inode: names.get(peer, "") for inode, peer in peers.items() if peer in known}
    return clients | dict.fromkeys(names, "")


def network_of(pid: int) -> int:
    """Return the network namespace of a process."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino


def _socket_of(pid: int) -> socket.socket:
    """Return a socket in the network namespace of a process."""
    if network_of(pid) == network_of(os.getpid()):
        return _open()
    # Only this thread enters it, and ends.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_open_in, pid).result()


def _open_in(pid: int) -> socket.socket:
    file = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        # os.setns came with Python 3.12.
        if ctypes.CDLL(None, use_errno=True).setns(file, _NETWORK):
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(file)
    return _open()


def _open() -> socket.socket:
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
    opened.settimeout(1)
    return opened


def _dump(
    kernel: socket.socket,
    *states: int,
    local: int = 0,
    remote: int = 0,
    protocol: int = socket.IPPROTO_TCP,
) -> Iterator[bytes]:
    for family in (socket.AF_INET, socket.AF_INET6):
        request = _REQUEST.pack(
            *(_REQUEST.size, _BY_FAMILY, _DUMP, 0, 0),
            *(family, protocol, 1 << (_INFO - 1), 0, sum(1 << state for state in states)),
            *map(socket.htons, (local, remote)),
            *(b"", b"", 0, b"\xff" * 8),
        )
        yield from _messages(kernel, request)


def _messages(kernel: socket.socket, request: bytes) -> Iterator[bytes]:
    kernel.send(request)
    while True:
        data = kernel.recv(_BUFFER)
        while data:
            length, kind, *_ = _HEADER.unpack_from(data)
            if kind == _DONE:
                return
            if kind == _ERROR:
                raise OSError("the kernel tells nothing of connections")
            yield data[_HEADER.size : length]
            data = data[(length + 3) & ~3 :]


def _destination(body: bytes) -> str:
    fields = _MESSAGE.unpack_from(body)
    is_v4 = fields[0] == socket.AF_INET
    address = ipaddress.ip_address(fields[7][:4] if is_v4 else fields[7])
    return str(getattr(address, "ipv4_mapped", None) or address)


def _end(body: bytes) -> tuple[int, End]:
    fields = _MESSAGE.unpack_from(body)
    port, peer_port = map(socket.ntohs, fields[4:6])
    peer = "" if fields[1] == _LISTEN else _destination(body)
    return fields[-1], End(peer, peer_port, port, fields[1] in _CLOSED)


def _connection(body: bytes, namespace: int) -> Connection:
    fields = _MESSAGE.unpack_from(body)
    info = _info(body[_MESSAGE.size :])
    sent_ago, received_ago, retransmits, received, sent = (
        int.from_bytes(info[at : at + 4], sys.byteorder)
        for at in (_SENT_AT, _RECEIVED_AT, _RETRANSMITS_AT, _SEGMENTS_IN_AT, _SEGMENTS_AT)
    )
    awaits: bool | None = sent_ago < received_ago
    if sent_ago == received_ago and sent:
        # The time of the opening counts as one at which data was received.
        awaits = True if not received else None
    # Each namespace may count its cookies for itself.
    return Connection(bytes([namespace]) + fields[9], awaits, sent, retransmits, received)


def _info(attributes: bytes) -> bytes:
    return dict(_attributes(attributes)).get(_INFO, bytes(_SEGMENTS_AT + 4))


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        yield kind, data[_ATTRIBUTE.size : length]
        data = data[max((length + 3) & ~3, _ATTRIBUTE.size) :]
