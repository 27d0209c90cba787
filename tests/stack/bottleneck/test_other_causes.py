"""Causes of other kinds than the lab's own settings make: a wrong name is the worst answer."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from load_lab.diagnosis import causes
from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.logged import CAUSES, STATES
from load_lab.diagnosis.wording import bottleneck_lines
from load_lab.load.load import Load, new_testid
from load_lab.metrics.windows import Bounds
from load_lab.paths import ROOT
from load_lab.run.single_run import run_once
from load_lab.settings import update_settings
from load_lab.targets.reference.app import ReferenceApp
from load_lab.targets.target import Target
from tests.stack.bottleneck.injections import (
    dead_resolver,
    full_disk_of_postgres,
    large_lists_behind_a_slow_nginx,
)
from tests.stack.bottleneck.recording import record
from tests.stack.bottleneck.started_apps import LOOP, PROCESSES, THREADS, App
from tests.support.little_disk import little_disk

# These tests load the machine, one cause after the other.
pytestmark = [pytest.mark.alone, pytest.mark.machine(part="causes")]

# What more workers, another app server or faster code would not help.
_MORE_WORKERS = (causes.SLOTS, causes.EVENT_LOOP, causes.GIL, causes.BACKEND_CPU)
_ONE = (causes.ONE_REQUEST,)
# Of programs that the small apps do not have.
_DATABASES = (
    causes.POSTGRES,
    causes.POSTGRES_CPU,
    causes.POSTGRES_IO,
    causes.POSTGRES_INTERNAL,
    causes.NETWORK,
    causes.ROW_LOCKS,
    causes.TABLE_LOCKS,
    causes.WAL,
    causes.MAX_CONNECTIONS,
    causes.REDIS,
    causes.REDIS_CPU,
)
_IN_THE_APP = (causes.PROCESS_LOCK, causes.SERIAL)
_FILE = (causes.FILE_LOCK, causes.SERIAL)
_OUTSIDE = (causes.OUTSIDE,)
# The name that the kernel has for a service of the tests.
_SERVICE = "python"
_DEAD = "127.0.0.99"
_RESOLVED_BY = ("unshare", "--mount", "sh", "-c")
_WITH_RESOLVER = 'mount --bind "$0/resolv.conf" /etc/resolv.conf && exec "$@"'
_COMPRESS = "gzip on; gzip_comp_level 7; gzip_types application/json;"
_ONE_AT_A_TIME = "proxy_cache pages; proxy_cache_lock on;"

_Start = Callable[[Any, Path], AbstractContextManager[Target]]


@dataclass(frozen=True)
class Case:
    """What starts a target, the causes that are right, next to "not clear", and those that may
    not be named at all.
    """

    start: _Start
    right: tuple[Cause, ...] = ()
    never: tuple[Cause, ...] = (*_MORE_WORKERS, *_ONE, *_DATABASES)
    load: dict[str, Any] = field(default_factory=lambda: {"rate": 60})
    settings: tuple[str, ...] = ()


def _with(disturb: Callable[[Any], AbstractContextManager[None]]) -> _Start:
    """Return what starts the reference app, disturbed."""

    @contextmanager
    def start(engine, _folder):
        with disturb(engine):
            yield ReferenceApp(engine)

    return start


def _processes(count: int, *options: str) -> tuple[str, ...]:
    return ("gunicorn", "--workers", str(count), *options, "waiting:app")


ONE_AT_A_TIME = {
    "a mutex of threads": Case(App("mutex").start, _IN_THE_APP),
    "a file lock of processes": Case(App("file_lock", PROCESSES).start, _FILE),
    "SQLite's write lock": Case(App("sqlite").start, _FILE),
    "a service that answers one at a time": Case(
        App("service", service=("answer", "{port}", "1", "0.04")).start, _OUTSIDE
    ),
}
BUSY_NGINX = {
    "an Nginx that compresses": Case(
        App("answer", PROCESSES, nginx=_COMPRESS).start,
        (causes.NGINX_CPU, causes.CLIENTS),
        (causes.SLOTS, causes.PROCESS_LOCK, causes.EVENT_LOOP, *_ONE, *_DATABASES),
        {"rate": 40},
    ),
    "an Nginx with a quota": Case(
        _with(large_lists_behind_a_slow_nginx),
        (causes.quota_of("Nginx"), causes.NGINX_CPU, causes.CLIENTS),
        (causes.SLOTS, causes.PROCESS_LOCK, causes.EVENT_LOOP, *_ONE, *_DATABASES),
        {"scenario": "list", "rate": 40},
        ("LAB_SERVER=gunicorn-sync", "LAB_WORKERS=4"),
    ),
}
ERRORS = {
    "a full disk of an app": Case(
        App("full_disk", around=lambda folder: little_disk(folder / "disk", "8m")).start,
        (STATES["errno 28"],),
    ),
    "a full disk of Postgres": Case(
        _with(full_disk_of_postgres),
        (STATES["53100"],),
        (*_MORE_WORKERS, *_ONE, causes.NETWORK, causes.ROW_LOCKS, causes.REDIS),
        {"scenario": "booking", "rate": 60},
        ("LAB_BOOKING=fast",),
    ),
    "a locked SQLite": Case(App("impatient_sqlite").start, (CAUSES["database is locked"],)),
}
IN_THE_APP = {
    "a semaphore of three": Case(App("semaphore").start, _IN_THE_APP),
    "a child that works on one at a time": Case(App("child").start, (*_IN_THE_APP, causes.OUTSIDE)),
    "a lock that threads try again": Case(App("polled_lock").start, _IN_THE_APP),
    "a file that is renamed": Case(App("renamed_file").start, _IN_THE_APP),
    "a record lock of processes": Case(App("record_lock", PROCESSES).start, _FILE),
    "a lock of processes": Case(App("lock_of_processes", PROCESSES).start, _IN_THE_APP),
    "a pool of two": Case(
        App("small_pool", service=("answer", "{port}", "16", "0.08")).start,
        (*_IN_THE_APP, causes.POOL),
    ),
    "an event loop with two threads": Case(
        App("executor", LOOP).start,
        # Another process has two more of them.
        (*_IN_THE_APP, causes.SLOTS),
        (causes.EVENT_LOOP, causes.GIL, causes.BACKEND_CPU, *_ONE, *_DATABASES),
    ),
    "an event loop with a semaphore": Case(App("semaphore", LOOP).start, _IN_THE_APP),
    "garbage collection": Case(
        App("garbage").start,
        (causes.BACKEND_CPU, causes.GIL),
        (causes.SLOTS, causes.EVENT_LOOP, *_IN_THE_APP, *_ONE, *_DATABASES),
        # Of CPUs that are three times as fast, too.
        {"rate": 180},
    ),
    "a regular expression": Case(
        App("regular_expression").start,
        (causes.BACKEND_CPU, causes.GIL),
        (causes.SLOTS, causes.EVENT_LOOP, *_IN_THE_APP, *_ONE, *_DATABASES),
        # Of CPUs that are three times as fast, too.
        {"rate": 180},
    ),
}
OUTSIDE = {
    "a service of two behind a Unix socket": Case(
        App("unix_service", service=("answer", "{folder}/service", "2", "0.08")).start, _OUTSIDE
    ),
    "a quota of a service": Case(
        App("service", service=("compute", "{port}", "4", "0.01"), cpus=0.25).start,
        (*_OUTSIDE, causes.quota_of(_SERVICE), causes.cpu_of(_SERVICE)),
        (*_MORE_WORKERS, causes.QUOTA, *_ONE, *_DATABASES),
    ),
    "a service that refuses": Case(
        App("service", service=("refuse", "{port}", "20")).start, (causes.REQUEST_LIMIT,)
    ),
    "a log that is read slowly": Case(
        App("blocked_pipe", service=("drain", "{folder}/log", "1600000")).start,
        (*_IN_THE_APP, *_OUTSIDE),
    ),
    "a slow DNS": Case(
        App(
            "name_lookup",
            PROCESSES,
            prefix=(*_RESOLVED_BY, _WITH_RESOLVER, "{folder}"),
            service=("silent", _DEAD),
            around=lambda folder: dead_resolver(folder, _DEAD),
        ).start,
        # Each worker waits on its own: more of them help.
        (causes.SLOTS, *_OUTSIDE),
        (causes.EVENT_LOOP, causes.GIL, causes.BACKEND_CPU, *_IN_THE_APP, *_DATABASES),
        {"rate": 12, "bound_ms": 4000},
    ),
    "clients that read slowly": Case(
        App("sleep", PROCESSES, service=("download", "{app_port}", "2")).start,
        (causes.SLOTS, causes.CLIENTS),
        (causes.EVENT_LOOP, causes.GIL, causes.BACKEND_CPU, *_IN_THE_APP, *_ONE, *_DATABASES),
    ),
    "a short accept queue": Case(
        App("sleep", _processes(2, "--backlog", "1")).start,
        (causes.SLOTS, causes.CLIENTS),
        (causes.EVENT_LOOP, causes.GIL, causes.BACKEND_CPU, *_IN_THE_APP, *_ONE, *_DATABASES),
    ),
    "a lock of Nginx's cache": Case(
        App("sleep", THREADS, nginx=_ONE_AT_A_TIME).start,
        (causes.CLIENTS,),
        (*_MORE_WORKERS, *_IN_THE_APP, *_ONE, *_DATABASES),
    ),
}
CASES = ONE_AT_A_TIME | BUSY_NGINX | ERRORS | IN_THE_APP | OUTSIDE


@pytest.fixture(autouse=True)
def _same_settings_afterwards(stack):
    before = stack.settings()
    yield
    with stack.empty_caches(before):
        pass


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_other_cause_is_named_rightly_or_not_at_all(stack, case, tmp_path):
    stack.apply(update_settings(stack.settings(), list(case.settings)))
    load = Load("breakpoint", duration="30s", testid=new_testid("cause"), **case.load)
    with case.start(stack, tmp_path) as target:
        single_run = run_once(stack, target, load, Bounds(p95_ms=load.bound_ms), quiet=True)
    record(single_run, case.right, case.never)
    shown = _shown(single_run.result)
    print(shown)
    found = single_run.result.bottleneck
    assert single_run.result.outcome == "broke", shown
    shutil.rmtree(ROOT / single_run.files["folder"])
    if found is None or found.cause is None:
        return
    assert found.certainty != "likely" or found.cause in {one.name for one in case.right}, shown
    assert not [one.name for one in case.never if one.name in found.headline], shown


def _shown(result):
    """Return the verdict, what limited the load, and what its threads did at last."""
    threads = {name: round(n, 1) for name, n in result.signals[-1].threads.items() if n}
    answers = f"at most {result.max_rps} answers/s; threads at the end: {threads}"
    return "\n".join(["", result.verdict, answers, *bottleneck_lines(result.bottleneck)])
