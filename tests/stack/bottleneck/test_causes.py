"""Known causes injected into the real stack: the lab must name them."""

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lab_settings.types import cpu_numbers

from load_lab.diagnosis import causes
from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.reading import expected_capacity
from load_lab.diagnosis.wording import bottleneck_lines
from load_lab.explain.explanation import StoredLoad
from load_lab.explain.proof import prove_cause
from load_lab.load.load import Load, new_testid
from load_lab.machine.cpus import choose_cpus, usable_cpus
from load_lab.metrics.windows import Bounds
from load_lab.paths import ROOT
from load_lab.run.single_run import run_once
from load_lab.settings import update_settings
from load_lab.targets.reference.app import ReferenceApp
from load_lab.targets.reference.two_stacks import separate_stack
from tests.stack.bottleneck.injections import (
    SlowFlush,
    blocked_event_loop,
    bursts_of_a_real_time_program,
    cpu_quota,
    distant_clients,
    few_nginx_connections,
    few_nginx_files,
    little_memory,
    locked_rows,
    locked_table,
    narrow_way_from_postgres,
    other_program,
    posts_without_index,
    program_of_low_priority,
    queries_of_others,
    quota_of_the_load,
    shared_redis_with_a_quota,
    slow_redis,
)
from tests.stack.bottleneck.recording import record

# These tests load the machine, one cause after the other.
pytestmark = [pytest.mark.alone, pytest.mark.machine(part="causes")]

# Of `lab explain --prove`.
_MOST_SECONDS = 240


@dataclass(frozen=True)
class Case:
    """A stack's settings, what disturbs it, the load, the causes that are right, and words of the
    evidence.
    """

    cause: Cause
    settings: tuple[str, ...] = ()
    load: dict[str, Any] = field(default_factory=dict)
    disturb: Callable[[Any], AbstractContextManager[None]] = lambda _engine: nullcontext()
    or_cause: Cause | None = None
    evidence: str = ""

    @property
    def names(self) -> set[str]:
        return {cause.name for cause in (self.cause, self.or_cause) if cause}


def _workbench(route, rate, **load):
    return {"scenario": "workbench", "route": route, "rate": rate, "bound_ms": 4000, **load}


_DETAILS = {"scenario": "detail", "rate": 600, "bound_ms": 300}
_GTHREAD = ("LAB_SERVER=gunicorn-gthread", "LAB_WORKERS=2", "LAB_THREADS=8")
_HOT_ROW = Case(causes.ROW_LOCKS, (*_GTHREAD, "LAB_WORKBENCH=on"), _workbench("row_lock", 6))
_FULL_CPU = Case(causes.BACKEND_CPU, load=_DETAILS)
_SMALL_POOL = Case(
    causes.POOL,
    ("LAB_SERVER=uvicorn", "LAB_WORKERS=1", "LAB_DB_POOL=2", "LAB_WORKBENCH=on"),
    _workbench("pg_sleep", 12),
)
_BEHIND_A_DELAY = Case(
    causes.SLOTS,
    ("LAB_LATENCY_MS=50", "LAB_DETAIL=fast"),
    {"scenario": "detail", "rate": 40, "bound_ms": 2000},
)
QUICK = {
    "CPU of the backend": _FULL_CPU,
    "two sync workers behind a delay": _BEHIND_A_DELAY,
    "a hot row": _HOT_ROW,
}
MORE = {
    "async server with a pool of two": _SMALL_POOL,
    "threads on a full CPU": Case(causes.BACKEND_CPU, _GTHREAD, _DETAILS),
    "an event loop on a full CPU": Case(
        causes.BACKEND_CPU, ("LAB_SERVER=uvicorn", "LAB_WORKERS=1"), _DETAILS
    ),
    "a locked table": Case(
        causes.TABLE_LOCKS,
        (*_GTHREAD, "LAB_DETAIL=fast"),
        {"scenario": "detail", "rate": 80, "bound_ms": 2000},
        locked_table,
    ),
    "a narrow way from Postgres": Case(
        causes.SLOTS,
        ("LAB_LATENCY_MS=2", "LAB_DETAIL=fast"),
        {"scenario": "detail", "rate": 100},
        narrow_way_from_postgres,
        or_cause=causes.NETWORK,
        evidence="in the network to and from Postgres",
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
        causes.OTHERS, load=_DETAILS, disturb=other_program
    ),
    "bursts of a real-time program, like steal": Case(
        causes.OTHERS, load=_DETAILS, disturb=bursts_of_a_real_time_program
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
    "few connections of Nginx": Case(
        causes.NGINX_CONNECTIONS,
        ("LAB_SERVER=gunicorn-gthread", "LAB_WORKERS=2", "LAB_THREADS=64", "LAB_WORKBENCH=on"),
        _workbench("sleep", 120),
        few_nginx_connections,
    ),
    "few open files of Nginx": Case(
        causes.NGINX_FILES,
        ("LAB_SERVER=gunicorn-gthread", "LAB_WORKERS=2", "LAB_THREADS=64", "LAB_WORKBENCH=on"),
        _workbench("sleep", 120),
        few_nginx_files,
    ),
    "a query without its index": Case(
        causes.POSTGRES_CPU,
        (*_GTHREAD, "LAB_WORKBENCH=on"),
        _workbench("io_read", 80),
        posts_without_index,
    ),
    "a slow Redis": Case(
        causes.REDIS,
        ("LAB_REDIS_CACHE=versioned",),
        {"scenario": "detail", "rate": 150, "bound_ms": 1000},
        slow_redis,
    ),
    "distant clients": Case(
        causes.CLIENTS,
        ("LAB_LATENCY_MS=300",),
        {"scenario": "list", "rate": 20, "bound_ms": 200},
        distant_clients,
    ),
    "a quota of the CPU": Case(causes.QUOTA, load=_DETAILS, disturb=cpu_quota),
    "a quota of Postgres": Case(
        causes.quota_of("Postgres"),
        ("LAB_DETAIL=fast",),
        {"scenario": "detail", "rate": 200},
        partial(cpu_quota, service="postgres", cpus=0.05),
    ),
    "a quota of Redis": Case(
        causes.quota_of("Redis"),
        ("LAB_REDIS_CACHE=versioned", "LAB_DETAIL=fast"),
        {"scenario": "detail", "rate": 250},
        shared_redis_with_a_quota,
    ),
    "queries of another program": Case(
        causes.POSTGRES_CPU,
        ("LAB_DETAIL=fast",),
        {"scenario": "detail", "rate": 300},
        queries_of_others,
    ),
    "rows that another program locks": Case(
        causes.ROW_LOCKS,
        ("LAB_BOOKING=naive",),
        {"scenario": "booking", "rate": 60},
        locked_rows,
    ),
    "workers that are killed for lack of memory": Case(
        causes.MEMORY,
        load={"scenario": "list", "rate": 20},
        disturb=little_memory,
        evidence="killed processes of the server",
    ),
    "a full load generator": Case(
        causes.GENERATOR,
        ("LAB_NGINX_CACHE=protected",),
        {"scenario": "list", "rate": 15_000, "bound_ms": 300},
    ),
    "a quota of the load generator": Case(
        causes.GENERATOR,
        ("LAB_NGINX_CACHE=protected",),
        {"scenario": "list", "rate": 2_000, "bound_ms": 300},
        quota_of_the_load,
        evidence="a CPU quota stopped it",
    ),
}
TRAPS = {
    "a full accept queue behind a lock": Case(
        causes.ROW_LOCKS,
        ("LAB_SERVER=gunicorn-sync", "LAB_WORKERS=8", "LAB_WORKBENCH=on"),
        _workbench("row_lock", 6),
    ),
    "a full CPU that nobody waits for": Case(
        causes.ROW_LOCKS, _HOT_ROW.settings, _HOT_ROW.load, program_of_low_priority
    ),
    "as many threads as connections": Case(
        causes.SLOTS,
        (
            *("LAB_SERVER=gunicorn-gthread", "LAB_WORKERS=1", "LAB_THREADS=2", "LAB_DB_POOL=2"),
            "LAB_WORKBENCH=on",
        ),
        _workbench("pg_sleep", 12),
        or_cause=causes.POOL,
    ),
}
# Both need another stack: with two CPUs, and with a Postgres that loads a library.
SEPARATE = {
    "one process with threads, on two CPUs": Case(
        causes.GIL,
        ("LAB_SERVER=gunicorn-gthread", "LAB_WORKERS=1", "LAB_THREADS=8"),
        _DETAILS,
    ),
    "a slow flush of the log": Case(
        causes.WAL,
        ("LAB_SERVER=gunicorn-sync", "LAB_WORKERS=4", "LAB_BOOKING=fast"),
        {"scenario": "booking", "rate": 40, "bound_ms": 2000},
    ),
}
PROVEN = {
    "CPU of the backend": _FULL_CPU,
    "a hot row": _HOT_ROW,
    "async server with a pool of two": _SMALL_POOL,
    "two sync workers behind a delay": _BEHIND_A_DELAY,
}
HELD = {
    "lists": {"scenario": "list", "rate": 5},
    "details": {"scenario": "detail", "rate": 4},
    "bookings": {"scenario": "booking", "rate": 3},
    "journeys": {"scenario": "journey", "rate": 1},
    "few lists": {"scenario": "list", "rate": 1},
}


def _run(engine, case):
    load = Load("breakpoint", duration="30s", testid=new_testid("cause"), **case.load)
    with case.disturb(engine):
        return run_once(
            engine, ReferenceApp(engine), load, Bounds(p95_ms=load.bound_ms), quiet=True
        )


def _check(engine, case):
    engine.apply(update_settings(engine.settings(), list(case.settings)))
    return _check_cause(_run(engine, case), case)


def _check_cause(single_run, case):
    result = single_run.result
    record(single_run, [each for each in (case.cause, case.or_cause) if each])
    found = result.bottleneck
    shown = "\n".join(["", result.verdict, *bottleneck_lines(found), str(found)])
    print(shown)
    assert found is not None, result.verdict
    assert found.cause in case.names, shown
    assert case.evidence in " ".join(found.evidence), shown
    shutil.rmtree(ROOT / single_run.files["folder"])
    return single_run


@pytest.fixture(autouse=True)
def _same_settings_afterwards(stack):
    before = stack.settings()
    yield
    with stack.empty_caches(before):
        pass


@pytest.fixture(scope="module")
def slow_flush():
    with tempfile.TemporaryDirectory() as folder:
        yield SlowFlush(Path(folder))


@pytest.fixture
def separate(separate_engine):
    yield separate_engine
    # What is still queued would disturb the other stack.
    with separate_engine.empty_caches():
        pass


@pytest.fixture(scope="module")
def separate_engine(stack, slow_flush):
    """Yield a stack whose target may use both CPUs, and whose flushes can be slowed."""
    cpus = ",".join(map(str, sorted(usable_cpus())[:2]))
    if "," not in cpus:
        pytest.skip("one CPU: a process that can't use more uses all")
    base = update_settings(stack.settings(), [f"LAB_TARGET_CPUS={cpus}", f"LAB_LOAD_CPUS={cpus}"])
    with ExitStack() as started:
        with pytest.MonkeyPatch.context() as patch:
            # Of all its programs, only Postgres flushes under load.
            patch.setenv("LD_PRELOAD", str(slow_flush.library))
            third = started.enter_context(separate_stack(3, base))
        yield third.engine


@pytest.mark.full
@pytest.mark.parametrize("case", QUICK.values(), ids=QUICK)
def test_cause_is_named(stack, case):
    _check(stack, case)


@pytest.mark.parametrize("case", MORE.values(), ids=MORE)
def test_more_causes_are_named(stack, case):
    _check(stack, case)


@pytest.mark.parametrize("case", TRAPS.values(), ids=TRAPS)
def test_traps_are_seen(stack, case):
    _check(stack, case)


def test_one_cpu_per_process_is_named(separate):
    _check(separate, SEPARATE["one process with threads, on two CPUs"])


def test_blocked_event_loop_of_another_app_is_named(stack, tmp_path):
    load = Load("breakpoint", "list", rate=60, duration="30s", testid=new_testid("cause"))
    with blocked_event_loop(stack, tmp_path) as target:
        single_run = run_once(stack, target, load, Bounds(), quiet=True)
    _check_cause(single_run, Case(causes.EVENT_LOOP))


def test_flush_of_the_log_is_named(separate, slow_flush):
    with slow_flush.on(separate):
        _check(separate, SEPARATE["a slow flush of the log"])


@pytest.mark.parametrize("case", PROVEN.values(), ids=PROVEN)
def test_cause_is_proven(stack, case, tmp_path):
    single_run = _check(stack, case)
    started = time.monotonic()
    document = _prove(stack, single_run, tmp_path)
    seconds = time.monotonic() - started
    print(document["headline"], f"({seconds:.0f} s)")
    assert document["proven"], document
    assert seconds < _MOST_SECONDS


def test_one_of_two_equal_limits_is_not_proven(stack, tmp_path):
    case = TRAPS["as many threads as connections"]
    single_run = _check(stack, case)
    document = _prove(stack, single_run, tmp_path)
    print(document["headline"])
    assert not document["proven"], document


def _prove(stack, single_run, folder):
    load = StoredLoad("a test", single_run.result, single_run.settings, folder)
    return prove_cause(stack, load)


def _hold(stack, **load):
    load = Load("hold", duration="12s", testid=new_testid("cause"), **load)
    single_run = run_once(stack, ReferenceApp(stack), load, Bounds(), quiet=True)
    record(single_run)
    assert single_run.result.outcome == "held", single_run.result.verdict
    shutil.rmtree(ROOT / single_run.files["folder"])
    return single_run.result


@pytest.mark.full
def test_load_that_held_has_no_bottleneck(stack):
    result = _hold(stack, **HELD["lists"])
    assert result.bottleneck is None
    # It was looked at all the same, ten times a second.
    seconds = result.signals
    assert len(seconds) > 10
    assert sum(one.samples for one in seconds) > 6 * len(seconds)
    # The lists' statements were seen on their connections.
    assert sum(one.sent["postgres"] for one in seconds) > 30
    # What predicts the capacity was measured: no wake-up takes 20 ms.
    assert 0 <= result.wake_ms < 20
    settings = stack.settings()
    assert result.target_cpus == len(cpu_numbers(choose_cpus(settings).target))
    assert expected_capacity(result, settings).rate > result.rps


@pytest.mark.parametrize("load", HELD.values(), ids=HELD)
def test_loads_that_held_have_no_bottleneck(stack, load):
    assert _hold(stack, **load).bottleneck is None
