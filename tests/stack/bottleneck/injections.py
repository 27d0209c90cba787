"""What disturbs a stack, so that its bottleneck is known; undone after the block."""

import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread, Timer

import httpx
import psutil
import pytest
import redis

from load_lab.machine.cpus import choose_cpus
from load_lab.settings import LOOPBACK
from load_lab.stack.native.supervision import port_is_open, wait_for
from load_lab.targets.target import PlainServer
from tests.support.little_disk import little_tablespace
from tests.support.ports import free_port

_CGROUPS = Path("/sys/fs/cgroup")
_NAME = "load-lab-test"
_SECONDS = 120
# A worker needs about three times as much; the load has begun by then.
_LITTLE_MEMORY = "20M"
_LATER_SECONDS = 12
_COMPUTE = "import sys, time\nend = time.time() + {seconds}\nwhile time.time() < end: {work}"
# 60 % of the time, as a hypervisor takes it.
_BURSTS = (
    "\n    until = time.time() + 0.03\n    while time.time() < until: pass\n    time.sleep(0.02)"
)

# An ASGI application that answers like the list of hotels.
_SLEEPING = """
import time

async def answer(scope, receive, send):
    if scope["type"] == "http":
        time.sleep(0.05)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        body = b'[{"id": "00000000-0000-4000-8000-000000000001"}]'
        await send({"type": "http.response.body", "body": body})
"""


@contextmanager
def _program(engine, work, *prefix):
    """Compute on the target's CPUs, in a process that is no child of this one."""
    name = f"{_NAME}-{secrets.token_hex(4)}"
    code = _COMPUTE.format(seconds=_SECONDS, work=work)
    pinned = ["taskset", "-c", choose_cpus(engine.settings()).target]
    argv = ["setsid", "--fork", *pinned, *prefix, sys.executable, "-c", code, name]
    subprocess.run(argv, check=True)
    try:
        yield
    finally:
        for process in psutil.process_iter(["cmdline"]):
            if name in (process.info["cmdline"] or ()):
                process.kill()


def other_program(engine):
    return _program(engine, "pass")


def program_of_low_priority(engine):
    """Take only what nobody else needs: the CPUs look full."""
    return _program(engine, "pass", "nice", "-n", "19")


@contextmanager
def bursts_of_a_real_time_program(engine):
    if subprocess.run(["chrt", "--fifo", "1", "true"], check=False).returncode:
        pytest.skip("no right to real-time priorities")
    with _program(engine, _BURSTS, "chrt", "--fifo", "1"):
        yield


@contextmanager
def slow_redis(engine):
    """Stop Redis for 60 of each 65 ms: after 80 ms, the app would do without it."""
    process = psutil.Process(engine.pids()["redis"])

    def blink():
        process.suspend()
        time.sleep(0.06)
        process.resume()
        time.sleep(0.005)

    with _again_and_again(blink):
        yield


@contextmanager
def narrow_way_from_postgres(engine):
    """Let 40 kB a second pass from Postgres to the backend, by the proxy that delays both."""
    port = engine.settings().LAB_TOXIPROXY_PORT
    toxics = f"http://{LOOPBACK}:{port}/proxies/postgres/toxics"
    narrow = {"type": "bandwidth", "stream": "downstream", "attributes": {"rate": 40}}
    httpx.post(toxics, json={"name": _NAME, **narrow}).raise_for_status()
    try:
        yield
    finally:
        httpx.delete(f"{toxics}/{_NAME}").raise_for_status()


@contextmanager
def _again_and_again(work):
    done = Event()

    def repeat():
        while not done.is_set():
            work()

    thread = Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def cpu_quota(engine, service="backend", cpus=0.3, period=0.1):
    """Let a service use no more than this part of a CPU, in any such number of seconds."""
    return _limited(engine.pids()[service], "cpu", *_cpu_limits(cpus, period))


def cpu_group(pid, cpus):
    """Let a process, its children, and what they start use no more than this part of a CPU."""
    return _limited(pid, "cpu", *_cpu_limits(cpus))


def leave_group(processes):
    """Move these processes out of their limits."""
    for process in processes:
        _move([process.pid], _group_of(os.getpid(), "cpu"))


@contextmanager
def shared_redis_with_a_quota(engine):
    """Let Redis use 2 % of a CPU, most of it for another client. It stops for less than the 80 ms
    after which the app does without it.
    """
    port, password = engine.settings().LAB_REDIS_PORT, engine._state.secret("redis_password")
    with (
        redis.Redis(port=port, password=password) as client,
        cpu_quota(engine, "redis", cpus=0.02, period=0.05),
        _again_and_again(client.ping),
    ):
        yield


def quota_of_the_load(_engine):
    """Let the lab and its k6 use no more than a third of a CPU, as a container may."""
    return _limited(os.getpid(), "cpu", *_cpu_limits(0.33))


def _cpu_limits(cpus, period=0.1):
    quota, each = (f"{1_000_000 * seconds:.0f}" for seconds in (period * cpus, period))
    return {"cpu.max": f"{quota} {each}"}, {"cpu.cfs_period_us": each, "cpu.cfs_quota_us": quota}


@contextmanager
def little_memory(engine):
    """Restart the backend's workers during the load, with less memory than they need."""
    limits = {"memory.max": _LITTLE_MEMORY}, {"memory.limit_in_bytes": _LITTLE_MEMORY}
    timer = Timer(_LATER_SECONDS, _end_workers, [engine.pids()["backend"]])
    with _limited(engine.pids()["backend"], "memory", *limits):
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _end_workers(master: int) -> None:
    for worker in psutil.Process(master).children():
        worker.terminate()


@contextmanager
def _limited(pid, controller, *limits):
    """Move a process and its children into a control group with limits: the values of its files, of
    version 2 and 1.
    """
    main = psutil.Process(pid)
    pids = [main.pid, *(child.pid for child in main.children(recursive=True))]
    is_second = (_CGROUPS / "cgroup.controllers").exists()
    folder = _CGROUPS / _NAME if is_second else _CGROUPS / controller / _NAME
    parent = _group_of(main.pid, controller)
    try:
        folder.mkdir(exist_ok=True)
        for file, value in (limits[0] if is_second else limits[1]).items():
            (folder / file).write_text(value)
        _move(pids, folder)
    except OSError as error:
        _remove_group(folder, parent)
        pytest.skip(f"no control group can be made: {error}")
    try:
        yield
    finally:
        _remove_group(folder, parent)


def _remove_group(folder: Path, parent: Path) -> None:
    # A process that another one of it starts is in it, too.
    while folder.exists() and (pids := (folder / "cgroup.procs").read_text().split()):
        _move(map(int, pids), parent)
    with suppress(FileNotFoundError):
        folder.rmdir()


def _group_of(pid: int, controller: str) -> Path:
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return _CGROUPS / controller / path.lstrip("/")
        if not controllers:
            unified = _CGROUPS / path.lstrip("/")
    return unified


def _move(pids, folder: Path) -> None:
    for pid in pids:
        # One that has ended needs no limit.
        with suppress(ProcessLookupError):
            (folder / "cgroup.procs").write_text(str(pid))


def few_nginx_connections(engine):
    """Let each worker of Nginx have 40 connections, those to the backend included."""
    return _nginx_limit(engine, "worker_connections", 40)


def few_nginx_files(engine):
    return _nginx_limit(engine, "worker_rlimit_nofile", 60)


@contextmanager
def _nginx_limit(engine, directive, value):
    file, master = engine._state.run / "nginx.conf", psutil.Process(engine.pids()["nginx"])
    before = file.read_text()
    changed = re.sub(rf"{directive} \d+;", f"{directive} {value};", before)
    assert changed != before
    try:
        file.write_text(changed)
        _reload(master)
        yield
    finally:
        file.write_text(before)
        _reload(master)


def _reload(master: psutil.Process) -> None:
    old = {child.pid for child in master.children()}
    master.send_signal(1)
    wait_for(
        lambda: {child.pid for child in master.children()} - old,
        seconds=10,
        what="new workers of Nginx",
    )


@contextmanager
def distant_clients(engine):
    """Leave the delay of LAB_LATENCY_MS between backend and clients only, until it is set again."""
    url = f"http://{LOOPBACK}:{engine.settings().LAB_TOXIPROXY_PORT}/proxies/postgres/toxics/delay"
    httpx.delete(url).raise_for_status()
    yield


_POSTS = "INSERT INTO workbench_post (title, content, created_at) SELECT '{name}', '', now() {rows}"


@contextmanager
def posts_without_index(engine):
    """Let Postgres read 300,000 posts for the first 25, and count them."""
    try:
        engine.sql(
            "hotel",
            _POSTS.format(name=_NAME, rows="FROM generate_series(1, 300000)"),
            "ALTER TABLE workbench_post DROP CONSTRAINT workbench_post_pkey",
            "ANALYZE workbench_post",
        )
        yield
    finally:
        engine.sql(
            "hotel",
            f"DELETE FROM workbench_post WHERE title = '{_NAME}'",
            "ALTER TABLE workbench_post DROP CONSTRAINT IF EXISTS workbench_post_pkey",
            "ALTER TABLE workbench_post ADD PRIMARY KEY (id)",
            "VACUUM FULL ANALYZE workbench_post",
        )


def locked_table(engine):
    """Lock the table of hotels for 0.7 of each 0.75 s, as migrations do."""
    return _locked(engine, "LOCK TABLE hotels_hotel IN ACCESS EXCLUSIVE MODE")


def locked_rows(engine):
    """Lock what bookings belong to, for 0.7 of each 0.75 s, as another program may."""
    tables = ("hotels_suite", "hotels_hotel")
    return _locked(engine, *(f"SELECT 1 FROM {table} FOR UPDATE" for table in tables))


@contextmanager
def _locked(engine, *statements):
    def lock():
        engine.sql("hotel", "BEGIN", *statements, "SELECT pg_sleep(0.7)", "COMMIT")
        time.sleep(0.05)

    with _again_and_again(lock):
        yield


@contextmanager
def queries_of_others(engine):
    """Let three sessions of another program compute in Postgres."""
    query = partial(engine.sql, "hotel", "SELECT count(*) FROM generate_series(1, 3000000)")
    with ExitStack() as running:
        for _ in range(3):
            running.enter_context(_again_and_again(query))
        yield


_SLOW_FLUSH = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

static int slow(const char *name, int file) {{
    if (access("{switch}", F_OK) == 0) usleep(150000);
    return ((int (*)(int))dlsym(RTLD_NEXT, name))(file);
}}
int fsync(int file) {{ return slow("fsync", file); }}
int fdatasync(int file) {{ return slow("fdatasync", file); }}
"""


class SlowFlush:
    """A library that, preloaded, makes each flush to the disk take 150 ms more while it is on."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler (cc) to make a slow fsync: apt install gcc libc6-dev")
        # Postgres's user must be able to read it.
        folder.chmod(0o755)
        self._switch, self.library = folder / "on", folder / "slow_flush.so"
        source = folder / "slow_flush.c"
        source.write_text(_SLOW_FLUSH.format(switch=self._switch))
        argv = [compiler, "-shared", "-fPIC", "-o", str(self.library), str(source), "-ldl"]
        subprocess.run(argv, check=True)

    @contextmanager
    def on(self, _engine) -> Iterator[None]:
        self._switch.touch()
        try:
            yield
        finally:
            self._switch.unlink()


@contextmanager
def blocked_event_loop(engine, folder):
    """Yield a target of another server, whose coroutine sleeps."""
    (folder / "sleeping.py").write_text(_SLEEPING)
    port = free_port()
    argv = [sys.executable, "-m", "uvicorn", "sleeping:answer", "--app-dir", str(folder)]
    with on_target_cpus(engine, *argv, "--port", str(port), "--no-access-log") as server:
        wait_for(lambda: port_is_open(LOOPBACK, port), seconds=20, what="uvicorn")
        pids = {"target": server.pid}
        yield PlainServer("sleeping", f"http://{LOOPBACK}:{port}", "a test's", pids)


@contextmanager
def on_target_cpus(engine, *argv, **options):
    """Yield a program's process; end it after the block."""
    cpus = choose_cpus(engine.settings()).target
    with subprocess.Popen(["taskset", "-c", cpus, *argv], **options) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def dead_resolver(folder, host):
    """Write the settings of a resolver that waits a second for a DNS server on this host."""
    (folder / "resolv.conf").write_text(f"nameserver {host}\noptions timeout:1 attempts:1\n")
    yield


_MORE_BYTES = 32_768


@contextmanager
def full_disk_of_postgres(engine):
    """Let Postgres store some bookings more, then none: their table is on a disk of its own."""
    (size,) = engine.sql("hotel", "SELECT pg_table_size('hotels_booking')")
    move = "ALTER TABLE hotels_booking SET TABLESPACE"
    with little_tablespace(engine, str(int(size) + _MORE_BYTES)):
        engine.sql("hotel", f"{move} little")
        try:
            yield
        finally:
            engine.sql("hotel", f"{move} pg_default")


@contextmanager
def large_lists_behind_a_slow_nginx(engine):
    """Let a list have 4 MB, more than Nginx's buffers, and Nginx use a twentieth of a CPU."""
    change = "UPDATE hotels_hotel SET description = {}"
    engine.sql("hotel", change.format("description || repeat('-', 1000000)"))
    try:
        with cpu_quota(engine, service="nginx", cpus=0.05):
            yield
    finally:
        engine.sql("hotel", change.format("rtrim(description, '-')"))
