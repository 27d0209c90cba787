"""What the lab sees of a server under load, on real sockets, threads and logs."""

import fcntl
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from subprocess import PIPE

import pytest

from load_lab.machine.control_groups import GroupEvents
from load_lab.machine.cpus import usable_cpus
from load_lab.machine.file_locks import FileLocks
from load_lab.machine.logs import FileText, Lines
from load_lab.machine.nginx_log import rejections
from load_lab.machine.observation import Look, Second
from load_lab.machine.observer import SignalSampler, Watched
from load_lab.machine.sockets import TcpDiagnosis
from load_lab.machine.threads import Processes, Thread
from load_lab.machine.waits import SocketNames, Waits
from load_lab.stack.native.supervision import wait_for


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0), backlog=20) as listening:
        yield listening


def _connect(server, count):
    return [socket.create_connection(server.getsockname()) for _ in range(count)]


def _awaiting(tcp, port):
    return sum(one.awaits for one in tcp.connections_to(port))


def test_requests_in_flight_are_connections_that_sent_later_than_they_received(server):
    port = server.getsockname()[1]
    with ExitStack() as opened:
        clients = [opened.enter_context(one) for one in _connect(server, 5)]
        accepted = [opened.enter_context(server.accept()[0]) for _ in range(3)]
        tcp = TcpDiagnosis()
        opened.callback(tcp.close)
        assert tcp.accept_queue(port) == 2
        assert _awaiting(tcp, port) == 0
        # The kernel's clock has steps of up to 10 ms.
        time.sleep(0.05)
        for client in clients:
            client.send(b"request")
        wait_for(lambda: _awaiting(tcp, port) == 5, seconds=2, what="five requests")
        time.sleep(0.05)
        for one in accepted[:2]:
            one.send(b"response")
        wait_for(lambda: _awaiting(tcp, port) == 3, seconds=2, what="two responses")
        assert sum(one.segments for one in tcp.connections_to(port)) == 5


def test_response_that_comes_slowly_is_awaited_by_a_thread(server):
    port = server.getsockname()[1]
    use, waits = Processes([]).use(), Waits(awaited=Counter({"postgres": 1}))
    with ExitStack() as opened:
        (client,) = (opened.enter_context(one) for one in _connect(server, 1))
        accepted = opened.enter_context(server.accept()[0])
        tcp = TcpDiagnosis()
        opened.callback(tcp.close)
        client.send(b"request")
        second = Second(use, GroupEvents())
        for _ in range(4):
            # The kernel's clock has steps of up to 10 ms.
            time.sleep(0.05)
            accepted.send(b"a part of the response")
            time.sleep(0.05)
            second.add(Look(waits, connections={"postgres": tcp.connections_to(port)}))
        assert second.signals(use, GroupEvents()).awaited == {"postgres": 1}
        # Of a connection alone, a part of a response may be all of it.
        second = second.following(use, GroupEvents())
        second.add(Look(Waits(), connections={"postgres": tcp.connections_to(port)}))
        assert second.signals(use, GroupEvents()).awaited == {}


def test_connections_that_a_full_queue_refuses_wait_too():
    with socket.create_server(("127.0.0.1", 0), backlog=1) as full, ExitStack() as opened:
        port = full.getsockname()[1]
        for _ in range(6):
            client = opened.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        tcp = TcpDiagnosis()
        opened.callback(tcp.close)
        wait_for(lambda: tcp.accept_queue(port) == 6, seconds=2, what="six connections")


# Brings up the loopback of its network (SIOCSIFFLAGS), and sends a request in it.
IN_ANOTHER_NETWORK = """
import fcntl, socket, struct, sys
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 1))
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
client.send(b"request")
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""


def test_connections_of_a_container_are_seen_in_its_network():
    if subprocess.run(["unshare", "--net", "true"], check=False).returncode:
        pytest.skip("only root with its rights enters the network of another process")
    argv = ["unshare", "--net", sys.executable, "-c", IN_ANOTHER_NETWORK]
    with (
        subprocess.Popen(argv, stdin=PIPE, stdout=PIPE, text=True) as process,
        ExitStack() as opened,
    ):
        port = int(process.stdout.readline())
        tcp = TcpDiagnosis([process.pid])
        opened.callback(tcp.close)
        wait_for(lambda: _awaiting(tcp, port) == 1, seconds=2, what="the request")
        assert tcp.accept_queue(port) == 1
        assert tcp.connections_to(port, "127.0.0.1")
        assert not tcp.connections_to(port, "127.0.0.2")
        process.communicate("")


# Each does one thing until its input ends; the parent holds the lock of the file.
AT_ONE_THING = """
import fcntl, os, select, socket, sys, threading, time
what, port, file = sys.argv[1:]
peer = socket.create_connection(("127.0.0.1", int(port))) if int(port) else None
reader, writer = os.pipe()
pair = socket.socketpair()
# Accepts nobody.
listening, queued = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
listening.bind(file + ".socket")
listening.listen()
queued.connect(file + ".socket")

def send():
    peer.sendall(bytes(1 << 25))

def query():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.connect(("127.0.0.1", 53))
        udp.recv(1)

def poll():
    waiting = select.poll()
    waiting.register(peer, select.POLLIN)
    waiting.poll()

works = {
    "recv": lambda: peer.recv(1),
    "poll": poll,
    "send": send,
    "flock": lambda: fcntl.flock(open(file), fcntl.LOCK_EX),
    "lockf": lambda: fcntl.lockf(open(file, "r+"), fcntl.LOCK_EX),
    "pipe": lambda: os.read(reader, 1),
    "pair": lambda: pair[0].recv(1),
    "queue": lambda: queued.recv(1),
    "fifo": lambda: os.write(os.open(file + ".fifo", os.O_RDWR), bytes(1 << 20)),
    "udp": query,
    "nap": lambda: time.sleep(60),
    "select": lambda: select.select([], [], [], 60),
    "lock": lambda: threading.Semaphore(0).acquire(),
    "epoll": lambda: select.epoll().poll(),
    "signal": lambda: __import__("signal").sigwait([10]),
}
threading.Thread(target=works[what], daemon=True).start()
idle = select.epoll()
idle.register(sys.stdin)
idle.poll()
os._exit(0)
"""
AT = {
    "recv": ("outside", "postgres"),
    "poll": ("outside", "postgres"),
    "send": ("outside", "postgres"),
    "flock": ("file", "FILE"),
    "lockf": ("file", "FILE"),
    "pipe": ("loop", ""),
    "pair": ("loop", ""),
    "queue": ("outside", "socket"),
    "fifo": ("outside", "FILE.fifo"),
    "udp": ("outside", "the name server 127.0.0.1"),
    "nap": ("sleep", ""),
    "select": ("sleep", ""),
    "lock": ("lock", ""),
    "epoll": ("loop", ""),
    "signal": ("other", ""),
}


@pytest.mark.parametrize("what", AT)
def test_thread_is_seen_at_what_it_waits_for(what, server, tmp_path):
    port, file = server.getsockname()[1], tmp_path / "locked"
    state, name = AT[what]
    at = port if what in ("recv", "poll", "send") else 0
    argv = [sys.executable, "-c", AT_ONE_THING, what, str(at), str(file)]
    os.mkfifo(f"{file}.fifo")
    with file.open("w") as held, ExitStack() as opened:
        fcntl.flock(held, fcntl.LOCK_EX)
        fcntl.lockf(held, fcntl.LOCK_EX)
        tcp = TcpDiagnosis()
        opened.callback(tcp.close)
        child = opened.enter_context(subprocess.Popen(argv, stdin=PIPE))
        processes = Processes([child.pid])
        processes.refresh()
        dependencies = {"postgres": (("", port),)}

        def seen():
            waits = SocketNames(tcp, ()).waits(processes.threads(), dependencies)
            # Its first thread waits in a loop, too.
            count = waits.threads[state] - (state == "loop")
            return count, waits.awaited + waits.files

        wanted = name.replace("FILE", str(file))
        wait_for(
            lambda: seen() == (1, Counter([wanted] if wanted else [])),
            seconds=10,
            what=f"a thread at {state} {wanted}; seen: {seen()}",
        )
        child.communicate(b"")


LOCKS = {
    "flock": "fcntl.flock(file, fcntl.LOCK_EX)",
    "lockf": "fcntl.lockf(file, fcntl.LOCK_EX)",
    "sqlite": "import sqlite3; db = sqlite3.connect(file.name, isolation_level=None); "
    "db.execute('BEGIN IMMEDIATE')",
    "shared": "fcntl.flock(file, fcntl.LOCK_SH)",
}


@pytest.mark.parametrize("kind", LOCKS)
def test_files_that_are_locked_for_writing_are_seen(kind, tmp_path):
    path = tmp_path / "locked"
    code = (
        f"import fcntl, sys\nfile = open({str(path)!r}, 'a')\n{LOCKS[kind]}\n"
        "print('locked', flush=True)\nsys.stdin.read()"
    )
    argv = [sys.executable, "-c", code]
    with subprocess.Popen(argv, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        seen = FileLocks().held([process.pid])
        of_others = FileLocks().held([os.getpid()])
        process.communicate("")
    assert seen == (set() if kind == "shared" else {str(path)})
    assert str(path) not in of_others


def test_server_that_waits_for_its_clients_is_idle_or_sends(server):
    """It polls its own port, and its end of a connection: no other program is awaited."""
    port = server.getsockname()[1]
    with ExitStack() as opened:
        (client,) = (opened.enter_context(one) for one in _connect(server, 1))
        accepted = opened.enter_context(server.accept()[0])
        tcp = TcpDiagnosis()
        opened.callback(tcp.close)
        (later,) = (opened.enter_context(one) for one in _connect(server, 1))
        closed = opened.enter_context(server.accept()[0])
        closed.shutdown(socket.SHUT_WR)
        assert later.recv(1) == b""
        ends, names = tcp.ends(), SocketNames(tcp, [port])
        by_socket = {
            os.fstat(one.fileno()).st_ino: one for one in (server, accepted, client, closed)
        }
        assert by_socket.keys() <= ends.keys()
        states = {
            one: {
                state: next(iter(names.waits([thread], {}).threads))
                for state in ("outside", "sending")
                for thread in [Thread(1, state, f"socket:[{inode}]")]
            }
            for inode, one in by_socket.items()
        }
    assert states[server]["outside"] == "loop"
    assert states[closed]["outside"] == "sending"
    assert states[accepted] == {"outside": "loop", "sending": "sending"}
    assert states[client] == {"outside": "outside", "sending": "outside"}


def test_threads_are_seen_while_they_compute_sleep_and_wait():
    stop, lock = threading.Event(), threading.Lock()
    ours, theirs = socket.socketpair()
    lock.acquire()

    def compute():
        while not stop.is_set():
            sum(range(1000))

    works = (compute, lambda: time.sleep(3), lambda: ours.recv(1), lambda: lock.acquire())
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    processes = Processes([os.getpid()])
    processes.refresh()
    before = processes.use()
    seen = set()

    def has_seen_all():
        seen.update(each.state for each in processes.threads())
        return {"sleep", "outside", "lock", "running"} <= seen

    try:
        wait_for(has_seen_all, seconds=3, what=f"each state; seen: {seen}")
        wait_for(
            lambda: sum(processes.use().cpu.values()) > sum(before.cpu.values()) + 0.1,
            seconds=5,
            what="CPU time",
        )
    finally:
        stop.set()
        theirs.send(b"x")
        lock.release()
        for thread in threads:
            thread.join()
        ours.close()
        theirs.close()


def test_nginx_refusals_are_counted_by_reason_from_the_start_of_a_load(tmp_path):
    log = tmp_path / "error.log"
    line = '2026/11/26 [error] 1#1: *1 {}, client: 127.0.0.1, request: "POST / HTTP/1.1"\n'
    log.write_text(line.format("no live upstreams while connecting"))
    text = FileText(log)
    with log.open("a") as file:
        for reason in (
            *("no live upstreams", "12 worker_connections are not enough", "other"),
            "accept4() failed (24: Too many open files)",
        ):
            file.write(line.format(reason))
    assert rejections(Lines(text)) == {"connections": 1, "files": 1, "shed": 1}


def test_second_of_a_server_has_its_requests_and_its_dependency(server):
    port = server.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as database, ExitStack() as opened:
        clients = [opened.enter_context(one) for one in _connect(server, 3)]
        opened.enter_context(server.accept()[0])
        query = opened.enter_context(socket.create_connection(database.getsockname()))
        watched = Watched(
            server_pids=(os.getpid(),),
            server_ports=(port,),
            find_dependencies=lambda: {"postgres": (database.getsockname()[:2],)},
        )
        time.sleep(0.05)
        published = []
        with SignalSampler(watched, set(usable_cpus()), published.append) as sampler:
            for one in (*clients, query):
                one.send(b"request")
            wait_for(lambda: len(sampler.seconds) >= 3, seconds=6, what="three seconds")
    last = sampler.seconds[2]
    assert last.samples >= 5
    assert (last.in_flight, last.queued) == (1, 2)
    # The thread that looks reads a file, too: it is of this process.
    assert last.awaited["postgres"] == 1
    assert any("Postgres's sessions" in lost for lost in sampler.lost)
    assert published[:2] == sampler.seconds[:2]


def test_threads_that_ran_and_new_ones_are_active_and_idle_ones_are_not():
    idle, work, stop = threading.Event(), threading.Event(), threading.Event()

    def once(event):
        event.wait()
        stop.wait()

    threads = [threading.Thread(target=once, args=(each,), daemon=True) for each in (idle, work)]
    late = threading.Thread(target=stop.wait, daemon=True)
    processes = Processes([os.getpid()])
    processes.refresh()

    def at_lock():
        return sum(each.state == "lock" for each in processes.threads())

    before = at_lock()
    for thread in threads:
        thread.start()
    wait_for(lambda: at_lock() == before + 2, seconds=5, what="two threads that wait")
    second = Second(processes.use(), GroupEvents())
    second.add(Look(Waits()))

    def active():
        return second.signals(processes.use(), GroupEvents()).active

    # This thread sleeps meanwhile, and runs again.
    wait_for(lambda: active() == 1, seconds=5, what="this thread")
    work.set()
    late.start()
    wait_for(
        lambda: active() == 3,
        seconds=5,
        what="a thread that ran, and a new one",
    )
    stop.set()
    idle.set()
    for thread in (*threads, late):
        thread.join()


def test_cpu_time_of_threads_that_ended_is_counted():
    """An event loop may run each request in a new thread."""
    processes = Processes([os.getpid()])
    processes.refresh()
    second, began, used = (
        Second(processes.use(), GroupEvents()),
        time.monotonic(),
        time.process_time(),
    )
    for _ in range(20):
        thread = threading.Thread(target=sum, args=(range(1_000_000),))
        thread.start()
        thread.join()
    seen = second.signals(processes.use(), GroupEvents())
    in_threads = 0.8 * (time.process_time() - used) / (time.monotonic() - began)
    assert seen.cpu > in_threads
    assert seen.busiest > in_threads


def test_of_many_hosts_that_are_awaited_the_last_ones_are_counted_together():
    use = Processes([]).use()
    second = Second(use, GroupEvents())
    hosts = {f"192.0.2.{n}:443": n for n in range(1, 13)}
    second.add(Look(Waits(awaited=Counter(hosts | {"postgres": 20}))))
    awaited = second.signals(use, GroupEvents()).awaited
    assert sum(awaited.values()) == 20 + sum(hosts.values())
    assert (len(awaited), awaited["postgres"], awaited["others"]) == (9, 20, 1 + 2 + 3 + 4 + 5)


def test_events_count_from_the_beginning_of_a_second():
    use = Processes([]).use()
    second = Second(use, GroupEvents({"server": 1.0}, {"server": 2.0}))
    time.sleep(0.05)
    seen = second.signals(use, GroupEvents({"server": 1.1, "redis": 9.0}, {"server": 1.0}))
    assert 0.5 < seen.throttled["server"] <= 2.0
    assert (seen.throttled["redis"], seen.killed["server"]) == (0.0, 0.0)
