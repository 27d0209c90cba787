"""For whom a server's threads wait: each thread's file, and what that is connected to."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from load_lab.machine.sockets import End, TcpDiagnosis
from load_lab.machine.threads import Thread, ThreadState

# By name: address and port of each; an empty address is any.
Dependencies = Mapping[str, tuple[tuple[str, int], ...]]
_DNS = 53


@dataclass(frozen=True)
class Waits:
    """The threads by what they are at; those that wait for another program, and for a file, by its
    name. Of the `working` processes, which have a thread that is not idle, the `blocked` ones have
    none that waits for requests.
    """

    threads: Counter[ThreadState] = field(default_factory=Counter)
    awaited: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    working: int = 0
    blocked: int = 0


class SocketNames:
    """Knows what the server's sockets are connected to. The kernel is asked only about new ones."""

    def __init__(self, tcp: TcpDiagnosis | None, server_ports: Iterable[int]) -> None:
        self._tcp, self._ports = tcp, set(server_ports)
        self._ends = dict[int, End | None]()

    def waits(self, threads: Iterable[Thread], dependencies: Dependencies) -> Waits:
        """Return whom the threads wait for.

        Raises:
            OSError: the kernel does not tell it.
        """
        seen = list(threads)
        sockets = {each.socket for each in seen} - {0}
        if self._tcp and not sockets <= self._ends.keys():
            # Those that the kernel does not tell are not asked for again.
            self._ends = dict.fromkeys(sockets) | self._tcp.ends()
        at = [self._of_clients(each) for each in seen]
        busy = {each.pid for each in at if each.state not in ("loop", "unknown")}
        return Waits(
            Counter(each.state for each in at),
            Counter(self._name(each, dependencies) for each in at if each.state == "outside"),
            Counter(each.file for each in at if each.state == "file"),
            len(busy),
            len(busy - {each.pid for each in at if each.state == "loop"}),
        )

    def _of_clients(self, thread: Thread) -> Thread:
        """Return the thread, idle if it waits for a client's next request, or for another process
        of the server, by a pair of sockets or a pipe: its threads are looked at, too. One
        that has closed its end waits until the client has taken the response.
        """
        end = self._ends.get(thread.socket)
        is_server = end is not None and (not end.peer or end.port in self._ports)
        if thread.state == "outside" and (is_server or thread.file.startswith("pipe:")):
            return replace(thread, state="sending" if end and end.closed else "loop")
        # Requests to other programs are small: they are sent at once.
        is_request = thread.state == "sending" and end is not None and not is_server
        return replace(thread, state="outside") if is_request else thread

    def _name(self, thread: Thread, dependencies: Dependencies) -> str:
        end = self._ends.get(thread.socket)
        if end is None:
            return thread.file.partition(":")[0]
        for name, places in dependencies.items():
            if any(port == end.peer_port and at in ("", end.peer) for at, port in places):
                return name
        if end.peer_port == _DNS:
            return f"the name server {end.peer}"
        return f"{end.peer}:{end.peer_port}" if end.peer_port else end.peer
