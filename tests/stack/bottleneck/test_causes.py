"""Known causes injected into the real stack: the lab must name them."""

import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import psutil
import pytest

from lab.analysis.bottleneck import causes
from lab.analysis.bottleneck.causes import Cause
from lab.analysis.windows import Bounds
from lab.cli.output.bottleneck import bottleneck_lines
from lab.host.cpus import choose_cpus
from lab.load.load import Load, new_testid
from lab.paths import ROOT
from lab.settings import update_settings
from lab.suites.single_run import run_once
from lab.targets.reference.app import ReferenceApp

# These tests load the machine, one cause after the other.
pytestmark = pytest.mark.alone


@dataclass(frozen=True)
class Case:
    """A stack's settings, what disturbs it, the load, and the cause."""

    cause: Cause
    settings: tuple[str, ...] = ()
    load: dict[str, Any] = field(default_factory=dict)
    disturb: Callable[[Any], AbstractContextManager[None]] = lambda _settings: nullcontext()


@contextmanager
def _other_program(settings):
    """Compute on the target's CPUs, in a process that is no child of this one."""
    name = f"other-{secrets.token_hex(4)}"
    code = "import time; end = time.time() + 90\nwhile time.time() < end: pass"
    cpus = choose_cpus(settings).target
    argv = ["setsid", "--fork", "taskset", "-c", cpus, sys.executable, "-c", code, name]
    subprocess.run(argv, check=True)
    yield
    for process in psutil.process_iter(["cmdline"]):
        if name in (process.info["cmdline"] or ()):
            process.kill()


def _workbench(route, rate, **load):
    return {"scenario": "workbench", "route": route, "rate": rate, "bound_ms": 4000, **load}


_GTHREAD = ("LAB_SERVER=gunicorn-gthread", "LAB_WORKERS=2", "LAB_THREADS=8")
QUICK = {
    "CPU of the backend": Case(
        causes.BACKEND_CPU, load={"scenario": "detail", "rate": 600, "bound_ms": 300}
    ),
    "two sync workers behind a delay": Case(
        causes.SLOTS,
        ("LAB_LATENCY_MS=50", "LAB_DETAIL=fast"),
        {"scenario": "detail", "rate": 40, "bound_ms": 2000},
    ),
    "a hot row": Case(causes.ROW_LOCKS, (*_GTHREAD, "LAB_WORKBENCH=on"), _workbench("row_lock", 6)),
}
MORE = {
    "async server with a pool of two": Case(
        causes.POOL,
        ("LAB_SERVER=uvicorn", "LAB_WORKERS=1", "LAB_DB_POOL=2", "LAB_WORKBENCH=on"),
        _workbench("pg_sleep", 12),
    ),
    "workers that sleep": Case(causes.SLOTS, ("LAB_WORKBENCH=on",), _workbench("sleep", 8)),
    "a request slower than the limit": Case(
        causes.ONE_REQUEST,
        (*_GTHREAD, "LAB_WORKBENCH=on"),
        _workbench("sleep", 30) | {"bound_ms": 500},
    ),
    "shedding in front of a full CPU": Case(
        causes.BACKEND_CPU,
        ("LAB_SHED=on",),
        {"scenario": "detail", "rate": 600},
    ),
    "other programs on the target's CPUs": Case(
        causes.OTHERS,
        load={"scenario": "detail", "rate": 600, "bound_ms": 300},
        disturb=_other_program,
    ),
    "few virtual users": Case(
        causes.VIRTUAL_USERS,
        (*_GTHREAD, "LAB_WORKBENCH=on"),
        _workbench("sleep", 30, max_vus=4),
    ),
    "a limit of bookings": Case(
        causes.REQUEST_LIMIT,
        ("LAB_NGINX_CACHE=protected", "LAB_NGINX_POST_RATE=5", "LAB_BOOKING=fast"),
        {"scenario": "booking", "rate": 60},
    ),
    "few connections of Postgres": Case(
        causes.MAX_CONNECTIONS,
        (*_GTHREAD, "LAB_WORKBENCH=on", "LAB_DB_MAX_CONNECTIONS=12"),
        _workbench("pg_sleep", 40),
    ),
}


def _run(stack, case):
    load = Load("breakpoint", duration="30s", testid=new_testid("cause"), **case.load)
    with case.disturb(stack.settings()):
        return run_once(stack, ReferenceApp(stack), load, Bounds(p95_ms=load.bound_ms), quiet=True)


@pytest.fixture(autouse=True)
def _same_settings_afterwards(stack):
    before = stack.settings()
    yield
    with stack.empty_caches(before):
        pass


def _check(stack, case):
    stack.apply(update_settings(stack.settings(), list(case.settings)))
    single_run = _run(stack, case)
    result = single_run.result
    found = result.bottleneck
    shown = "\n".join(["", result.verdict, *bottleneck_lines(found), str(found)])
    print(shown)
    assert found is not None, result.verdict
    assert found.cause == case.cause.name, shown
    shutil.rmtree(ROOT / single_run.files["folder"])


@pytest.mark.parametrize("case", QUICK.values(), ids=QUICK)
def test_cause_is_named(stack, case):
    _check(stack, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", MORE.values(), ids=MORE)
def test_more_causes_are_named(stack, case):
    _check(stack, case)


def test_load_that_held_has_no_bottleneck(stack):
    load = Load("hold", "list", rate=5, duration="12s", testid=new_testid("cause"))
    single_run = run_once(stack, ReferenceApp(stack), load, Bounds(), quiet=True)
    assert single_run.result.outcome == "held"
    assert single_run.result.bottleneck is None
    # It was looked at all the same, ten times a second.
    seconds = single_run.result.signals
    assert len(seconds) > 10
    assert sum(one.samples for one in seconds) > 6 * len(seconds)
    # The lists' statements were seen on their connections.
    assert sum(one.sent["postgres"] for one in seconds) > 30
    shutil.rmtree(ROOT / single_run.files["folder"])
