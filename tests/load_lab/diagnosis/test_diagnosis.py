"""The bottleneck that is named, for what was seen of a target under load."""

from dataclasses import replace

import pytest

from load_lab.diagnosis import causes
from load_lab.diagnosis.diagnosis import diagnose
from load_lab.diagnosis.facts import Facts, seen_slots
from load_lab.diagnosis.period import Period
from load_lab.diagnosis.prediction import predicted_rate
from load_lab.diagnosis.reading import limits_of, seconds_alone
from load_lab.diagnosis.split import split_of
from load_lab.machine.cpu_use import CpuUse
from load_lab.metrics.windows import Window
from load_lab.results.result import ErrorStart
from load_lab.settings import load_settings, update_settings

CALM_CPU = CpuUse(0, target=0.1, load=0.2, services={"backend": 0.05, "postgres": 0.02})
FULL_CPU = CpuUse(0, target=0.99, load=0.3, services={"backend": 0.8, "postgres": 0.15})


def _period(**values):
    """Return two sync workers that wait for Postgres behind a delay, unless changed."""
    defaults = {
        "answered": 4.7,
        "dropped": 0.0,
        "looks": 60,
        "cpu": CALM_CPU,
        "in_flight": 2.0,
        "queued": 11.0,
        "threads": {"outside": 1.9, "loop": 1.0},
        "sessions": {"idle": 2.0},
        "awaited": {"postgres": 1.9, "redis": 0.0},
        "sent": {"postgres": 33.0},
        "server_cpu": 0.06,
    }
    return Period(**(defaults | values))


def _facts(**values):
    seen = {name: values.pop(name) for name in list(values) if name in Period.__annotations__}
    return Facts(_period(**seen), **({"slots": 2, "processes": 2} | values))


_ONE_BLOCKED_THREAD = {"active": 1.0, "working": 1.0, "blocked": 1.0}
_LOCKED_TABLE = {
    **{"slots": 16, "in_flight": 16.0},
    **{"awaited": {"postgres": 15.0}, "sessions": {"table": 14.0}},
}
CASES = {
    "workers behind a delay": (_facts(), causes.SLOTS),
    "no limit of workers": (_facts(slots=None), causes.NETWORK),
    "an event loop that sleeps": (
        _facts(
            **{"slots": None, "processes": None, "in_flight": 30.0, "queued": 0.3},
            **{"threads": {"sleep": 0.96}, "sessions": {}, "awaited": {}, "in_server": 30.0},
            **_ONE_BLOCKED_THREAD,
        ),
        causes.EVENT_LOOP,
    ),
    "an event loop that sleeps, and idle threads": (
        _facts(
            **{"slots": None, "processes": None, "in_flight": 20.0, "queued": 80.0},
            **{"threads": {"sleep": 0.98, "lock": 4.0}, "sessions": {}, "awaited": {}},
            **{"server_cpu": 0.02, "in_server": 20.0},
            **_ONE_BLOCKED_THREAD,
        ),
        causes.EVENT_LOOP,
    ),
    "threads at a lock whose holder sleeps": (
        _facts(
            **{"slots": None, "processes": None, "in_flight": 30.0, "queued": 0.0},
            **{"threads": {"sleep": 0.98, "lock": 8.0, "loop": 1.0}, "sessions": {}, "awaited": {}},
            **{"active": 10.0, "working": 1.0, "blocked": 0.0, "in_server": 30.0},
        ),
        causes.PROCESS_LOCK,
    ),
    "event loops that wait for Postgres": (
        _facts(
            **{"slots": None, "in_flight": 30.0, "queued": 0.0, "in_server": 30.0},
            **{"active": 3.0, "working": 2.0, "blocked": 2.0},
        ),
        causes.EVENT_LOOP,
    ),
    "CPU of the backend": (
        _facts(cpu=FULL_CPU, server_cpu=0.8, waited=1.1, awaited={"postgres": 0.1}, threads={}),
        causes.BACKEND_CPU,
    ),
    "CPU of Postgres": (
        _facts(
            cpu=replace(FULL_CPU, services={"backend": 0.1, "postgres": 0.85}),
            sessions={"cpu": 1.8},
            server_cpu=0.1,
        ),
        causes.POSTGRES_CPU,
    ),
    "row locks": (
        _facts(slots=16, in_flight=20.0, awaited={"postgres": 15.0}, sessions={"lock": 14.0}),
        causes.ROW_LOCKS,
    ),
    "flush of the log": (
        _facts(slots=16, in_flight=16.0, awaited={"postgres": 14.0}, sessions={"wal": 13.0}),
        causes.WAL,
    ),
    "pool": (
        _facts(
            slots=16,
            in_flight=16.0,
            pool=2,
            awaited={"postgres": 2.0},
            sessions={"sleep": 2.0},
            threads={"lock": 14.0, "outside": 2.0},
        ),
        causes.POOL,
    ),
    "GIL": (
        _facts(
            slots=8,
            processes=1,
            in_flight=8.0,
            cpu=replace(CALM_CPU, target=0.55),
            server_cpu=1.0,
            busiest=1.0,
            awaited={},
            threads={"lock": 7.0, "running": 1.0},
        ),
        causes.GIL,
    ),
    "Redis's CPU": (
        _facts(
            cpu=replace(CALM_CPU, services={"redis": 0.95}), awaited={"redis": 1.9}, sessions={}
        ),
        causes.REDIS_CPU,
    ),
    "generator": (_facts(limited_by="generator_cpu"), causes.GENERATOR),
    "open files of Nginx": (
        _facts(
            **{"slots": 16, "in_flight": 200.0, "in_server": 0.2, "queued": 0.0, "awaited": {}},
            **{"threads": {}, "rejections": {"files": 27}},
        ),
        causes.NGINX_FILES,
    ),
    "open files of Nginx that were enough": (_facts(rejections={"files": 1}), causes.SLOTS),
    "slow Redis": (
        _facts(awaited={"redis": 1.9}, sent={"redis": 9.0}, threads={"outside": 1.9}),
        causes.REDIS,
    ),
    "many round trips to Redis": (
        _facts(awaited={"redis": 1.9}, sent={"redis": 1900.0}, threads={"outside": 1.9}),
        causes.SLOTS,
    ),
    "network of the clients": (
        _facts(slots=16, in_flight=20.0, in_server=0.2, queued=0.0, awaited={}, threads={}),
        causes.CLIENTS,
    ),
    "other programs": (
        _facts(cpu=replace(FULL_CPU, taken=0.5, others=0.9), waited=1.2),
        causes.OTHERS,
    ),
    "hypervisor": (_facts(cpu=replace(FULL_CPU, steal=0.3)), causes.STEAL),
    "quota": (_facts(throttled={"postgres": 0.2, "server": 0.5}), causes.QUOTA),
    "quota of Postgres": (
        _facts(awaited={"postgres": 1.9}, sessions={"cpu": 1.8}, throttled={"postgres": 0.5}),
        causes.quota_of("Postgres"),
    ),
    "quota of a service that nobody waits for": (
        _facts(**_LOCKED_TABLE, throttled={"redis": 0.5}),
        causes.TABLE_LOCKS,
    ),
    "memory": (_facts(faults=400.0), causes.MEMORY),
    "killed processes": (_facts(killed={"server": 0.5}), causes.MEMORY),
    "killed processes of a service that nobody waits for": (
        _facts(**_LOCKED_TABLE, killed={"redis": 0.5}),
        causes.TABLE_LOCKS,
    ),
    "virtual users": (
        _facts(dropped=3.0, in_flight=2.0, slots=16, queued=0.0),
        causes.VIRTUAL_USERS,
    ),
    "a lock of a table": (
        _facts(**_LOCKED_TABLE),
        causes.TABLE_LOCKS,
    ),
    "an advisory lock": (
        _facts(slots=16, in_flight=16.0, awaited={"postgres": 15.0}, sessions={"advisory": 14.0}),
        causes.ADVISORY_LOCKS,
    ),
    "a full CPU behind threads": (
        # They wait for the GIL of two processes that share the CPU.
        _facts(
            **{"slots": 16, "in_flight": 16.0, "cpu": FULL_CPU, "server_cpu": 0.8, "waited": 2.5},
            **{"busiest": 0.4, "awaited": {"postgres": 0.2}, "threads": {"lock": 12.0}},
        ),
        causes.BACKEND_CPU,
    ),
    "threads that leave the CPU idle when they hand on the GIL": (
        _facts(
            **{"slots": 16, "in_flight": 16.0, "server_cpu": 0.75, "waited": 2.9, "busiest": 0.4},
            **{"awaited": {"postgres": 3.6}, "threads": {"lock": 9.0}},
            cpu=replace(FULL_CPU, target=0.85),
        ),
        causes.BACKEND_CPU,
    ),
    "workers that compute on idle CPUs": (
        _facts(server_cpu=1.2, waited=0.02, awaited={"postgres": 0.7}, sessions={"sleep": 0.7}),
        causes.SLOTS,
    ),
    "a pool, with queries that compute": (
        _facts(
            **{"slots": 16, "in_flight": 6.0, "pool": 2, "sessions": {"cpu": 2.0}, "queued": 0.0},
            **{"awaited": {"postgres": 2.0}, "threads": {"lock": 4.0, "outside": 2.0}},
            cpu=replace(CALM_CPU, target=0.5, services={"backend": 0.05, "postgres": 1.9}),
        ),
        causes.POOL,
    ),
    "one request": (
        _facts(first_p95=1.2, begin=_period(in_flight=0.6, queued=0.0)),
        causes.ONE_REQUEST,
    ),
    "one request of distant clients": (
        _facts(
            first_p95=1.2,
            begin=_period(in_flight=0.02, queued=0.0),
            early=_period(in_flight=3.0, in_server=0.1, queued=0.0),
        ),
        causes.CLIENTS,
    ),
    "one request of two kinds, of which one is slow": (
        _facts(
            first_p95=1.2,
            begin=_period(in_flight=0.3, queued=0.0),
            early=_period(in_flight=0.9, in_server=0.7, queued=0.0),
        ),
        causes.ONE_REQUEST,
    ),
    "CPU of Nginx": (
        _facts(
            cpu=replace(FULL_CPU, services={"nginx": 0.9, "backend": 0.05}),
            **{"slots": None, "in_flight": 60.0, "in_server": 0.1, "queued": 0.0},
            **{"awaited": {}, "threads": {"loop": 2.0}, "server_cpu": 0.02},
        ),
        causes.NGINX_CPU,
    ),
    "a full CPU behind Nginx's queue": (
        _facts(
            cpu=FULL_CPU,
            **{"in_flight": 60.0, "in_server": 2.0, "queued": 0.0, "server_cpu": 0.8},
            **{"waited": 1.1, "awaited": {"postgres": 0.1}, "threads": {}},
        ),
        causes.BACKEND_CPU,
    ),
    "Nginx's limit": (
        _facts(by_errors=True, rejections={"limit": 40}, failed=45),
        causes.REQUEST_LIMIT,
    ),
    "connections": (
        # Four are reserved.
        _facts(by_errors=True, max_connections=20, most_sessions=15.0),
        causes.MAX_CONNECTIONS,
    ),
}


@pytest.mark.parametrize(("facts", "cause"), CASES.values(), ids=CASES)
def test_cause_is_named(facts, cause):
    found = diagnose(facts)
    assert found.cause == cause.name, found
    assert found.certainty == "likely"
    assert found.remedy == cause.remedy
    assert all(found.evidence)


# One request of 40 ms at a time, at 24.5/s; 16 threads, and 30 more requests in front of them.
_SIXTEEN_THREADS = {
    **{"slots": None, "processes": None, "answered": 24.5, "alone": 0.041, "server_cpu": 0.03},
    **{"in_flight": 46.0, "in_server": 46.0, "queued": 0.0, "active": 17.0, "working": 1.0},
    **{"sessions": {}, "awaited": {}, "sent": {}, "looks": 60},
}
SERIAL = {
    "a mutex": ({"threads": {"lock": 15.0, "sleep": 1.0, "loop": 1.0}}, causes.PROCESS_LOCK),
    "a lock of a file": (
        {"threads": {"file": 15.0, "sleep": 1.0, "loop": 1.0}, "files": {"/run/own.lock": 15.0}},
        causes.FILE_LOCK,
    ),
    "a lock that threads try again": (
        {"threads": {"sleep": 16.0, "loop": 1.0}},
        causes.SERIAL,
    ),
    "a lock of a file that threads try again": (
        {
            **{"threads": {"sleep": 16.0, "loop": 1.0}, "locked": {"/srv/own.db": 0.97}},
            "half": _period(locked={"/srv/own.db": 0.3}),
        },
        causes.FILE_LOCK,
    ),
    "a lock that threads try again, beside a locked file with the process's number": (
        {
            **{"threads": {"sleep": 16.0, "loop": 1.0}, "locked": {"/run/app.pid": 1.0}},
            "half": _period(locked={"/run/app.pid": 1.0}),
        },
        causes.SERIAL,
    ),
    "event loops whose threads wait for a service that answers one at a time": (
        {
            **{"threads": {"outside": 4.0}, "awaited": {"127.0.0.1:9000": 4.0}, "active": 4.0},
            **{"working": 4.0, "blocked": 4.0},
        },
        causes.OUTSIDE,
    ),
    "a service": (
        {"threads": {"outside": 16.0, "loop": 1.0}, "awaited": {"127.0.0.1:9000": 16.0}},
        causes.OUTSIDE,
    ),
    "a pipe": (
        {"threads": {"outside": 16.0, "loop": 1.0}, "awaited": {"pipe": 16.0}},
        causes.OUTSIDE,
    ),
    "a call that is not known": ({"threads": {"other": 16.0, "loop": 1.0}}, causes.SERIAL),
    "threads that are not seen": ({"active": 0.0, "threads": {}}, causes.SERIAL),
}


@pytest.mark.parametrize(("values", "cause"), SERIAL.values(), ids=SERIAL)
def test_what_serves_one_at_a_time_is_no_lack_of_workers(values, cause):
    found = diagnose(_facts(**(_SIXTEEN_THREADS | values)))
    assert (found.cause, found.certainty) == (cause.name, "likely")
    names = [*values.get("files", {}), *values.get("awaited", {})]
    names += values.get("locked", {}) if cause == causes.FILE_LOCK else []
    assert all(name in " ".join(found.evidence) for name in names)


def test_workers_are_not_blamed_where_nobody_knows_how_long_a_request_takes_alone():
    values = {"threads": {"sleep": 16.0, "loop": 1.0}, "alone": None}
    found = diagnose(_facts(**(_SIXTEEN_THREADS | values)))
    assert found.cause != causes.SLOTS.name


@pytest.mark.parametrize(
    ("means", "alone"),
    [
        # A ramp, quick until a queue grows.
        ([45, 42, 42, 43, 44, 44, 60, 300, 700], 0.042),
        # The first requests are slow, of a new process.
        ([400, 300, 90, 42, 42, 42, 43, 44], 0.042),
        # A queue from the first second on.
        ([500, 700, 900, 1100, 1300, 1500, 1700], None),
        ([None, None, None, None, None], None),
        ([42], None),
    ],
)
def test_time_of_a_request_without_a_queue_is_that_of_steady_windows(means, alone):
    windows = [
        Window(5 + n, 10, 10, 10, 10, 0, 0, p95_ms=1, mean_ms=mean) for n, mean in enumerate(means)
    ]
    assert seconds_alone(windows, until=99) == alone
    failing = [replace(window, error_ratio=0.2) for window in windows]
    assert seconds_alone(failing, until=99) is None
    assert seconds_alone(windows, until=-1) is None


def test_three_at_a_time_is_no_lack_of_workers_but_has_no_name():
    values = {"answered": 73.0, "threads": {"sleep": 16.0, "loop": 1.0}}
    found = diagnose(_facts(**(_SIXTEEN_THREADS | values)))
    assert found.cause is None
    assert "3.0 requests are served at once" in " ".join(found.evidence)


@pytest.mark.parametrize("state", ["sleep", "outside", "other", "disk"])
def test_threads_that_take_as_long_as_alone_are_too_few(state):
    values = {"answered": 390.0, "threads": {state: 16.0, "loop": 1.0}}
    awaited = {"127.0.0.1:9000": 16.0} if state == "outside" else {}
    found = diagnose(_facts(**(_SIXTEEN_THREADS | values | {"awaited": awaited})))
    assert found.cause == causes.SLOTS.name


@pytest.mark.parametrize(("cores", "cause"), [(0.81, causes.NGINX_CPU), (0.05, causes.CLIENTS)])
def test_workers_that_send_to_a_busy_nginx_wait_for_no_dependency(cores, cause):
    """All their sessions are idle."""
    found = diagnose(
        _facts(
            **{"slots": 4, "in_flight": 4.0, "answered": 20.0, "sessions": {"idle": 4.0}},
            **{"threads": {"sending": 3.9}, "awaited": {}, "server_cpu": 0.05},
            cpu=replace(CALM_CPU, target=0.6, services={"nginx": cores, "backend": 0.05}),
        )
    )
    assert found.cause == cause.name


def test_requests_that_wait_in_a_full_nginx_are_not_slow_alone():
    busy = replace(FULL_CPU, services={"nginx": 0.9, "backend": 0.05})
    begin = _period(in_flight=0.4, queued=0.0, cpu=busy)
    found = diagnose(
        _facts(
            **{"first_p95": 1.2, "begin": begin, "cpu": busy, "threads": {"sending": 1.9}},
            **{"awaited": {}, "sessions": {"idle": 2.0}, "server_cpu": 0.05},
        )
    )
    assert found.cause == causes.NGINX_CPU.name


def test_time_of_a_request_is_where_the_workers_are():
    """Two workers, 4.7 requests/s: 426 ms each, 404 ms of them for Postgres."""
    split = split_of(_period(), 2)
    times = split.milliseconds(4.7)
    assert sum(times.values()) == pytest.approx(1000 * 2 / 4.7)
    assert times["network"] == pytest.approx(1000 * 1.9 / 4.7)
    assert split.waiting == 11.0
    found = diagnose(_facts())
    assert found.headline == "worker slots (they wait for the network to Postgres)"
    assert "7 round trips of 58 ms" in found.evidence[1]
    lost = diagnose(_facts(retransmits=3.0))
    assert "3 packets a second were lost and sent again" in lost.evidence[1]


def test_shedding_is_a_symptom():
    facts = _facts(by_errors=True, rejections={"shed": 400}, failed=400)
    assert diagnose(facts).cause == causes.SLOTS.name


@pytest.mark.parametrize(
    "values",
    [
        # Requests await something in an event loop.
        {"threads": {"loop": 1.0}, "awaited": {}, "in_flight": 40.0},
        # Another user's processes, on the docker engine.
        {"threads": {"unknown": 3.0}, "awaited": {}, "sessions": {}, "in_flight": None},
    ],
)
def test_what_is_not_seen_is_not_named(values):
    found = diagnose(_facts(slots=None, **values))
    assert found.cause is None
    assert found.certainty in ("unseen", "unclear")


def test_role_that_sees_no_session_is_not_taken_for_idle_sessions():
    assert diagnose(_facts(sessions={"cpu": 0.0, "idle": 0.0})).cause == causes.POSTGRES.name


def test_postgres_whose_sessions_are_not_seen_is_not_called_the_way_there():
    found = diagnose(_facts(sessions={}))
    assert found.cause == causes.POSTGRES.name


def test_workers_are_busy_while_connections_wait_for_them():
    """Of those that clients gave up, no connection is left."""
    facts = _facts(in_flight=1.1, queued=7.0, awaited={"postgres": 1.0}, threads={"outside": 1.8})
    assert diagnose(facts).cause == causes.SLOTS.name


_BEGAN = ErrorStart(after=20, operations=4, of=6, lasting=True)
_IDLE = {
    **{"by_errors": True, "failed": 400, "slots": 16, "in_flight": 0.2, "queued": 0.0},
    **{"awaited": {}, "threads": {}, "sessions": {}},
}


def test_errors_that_begin_at_one_moment_while_nothing_is_full_are_no_limit():
    found = diagnose(_facts(**_IDLE, began=_BEGAN, advice="log in again"))
    assert found.is_no_limit
    assert found.cause is None
    assert (
        "no limit of the target: errors began at one moment, 20 s into the load" in found.headline
    )
    assert "at 4 of 6 operations, while no part was full" in found.headline
    assert found.remedy == "log in again"
    missing = diagnose(_facts(**_IDLE, unloaded=404))
    assert missing.is_no_limit
    assert "most errors are 404" in missing.headline
    other = diagnose(_facts(**_IDLE))
    assert not other.is_no_limit
    assert other.headline == "not clear: requests failed, and no part of the target was full"


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        ({"max_connections": 20, "most_sessions": 16.0}, causes.MAX_CONNECTIONS),
        ({"killed": {"server": 0.5}}, causes.MEMORY),
        ({"rejections": {"limit": 390}}, causes.REQUEST_LIMIT),
        ({"rejections": {"connections": 390}}, causes.NGINX_CONNECTIONS),
        ({"cpu": FULL_CPU, "server_cpu": 0.8, "waited": 1.1}, causes.BACKEND_CPU),
        (
            {"slots": 2, "in_flight": 2.0, "awaited": {"postgres": 1.9}, "sessions": {"idle": 2.0}},
            causes.SLOTS,
        ),
    ],
)
def test_errors_at_one_moment_do_not_hide_what_is_full(values, cause):
    found = diagnose(_facts(**(_IDLE | values), began=_BEGAN))
    assert found.cause == cause.name
    assert not found.is_no_limit


def test_shedding_at_one_moment_is_a_symptom():
    found = diagnose(_facts(**_IDLE | {"slots": 2}, began=_BEGAN, rejections={"shed": 400}))
    assert not found.is_no_limit


def test_a_few_refused_requests_are_not_the_cause():
    facts = _facts(by_errors=True, rejections={"limit": 1}, failed=100)
    assert diagnose(facts).cause == causes.SLOTS.name


def test_busy_programs_beside_idle_cpus_are_not_the_cause():
    facts = _facts(cpu=replace(CALM_CPU, target=0.4, taken=0.3))
    assert diagnose(facts).cause == causes.SLOTS.name


def test_database_of_a_foreign_target_is_named_by_its_program():
    cpu = CpuUse(0, target=0.97, load=0.2, services={"target": 0.1, "mysqld": 0.8})
    facts = _facts(cpu=cpu, slots=None, sessions={}, awaited={}, waited=1.5)
    assert diagnose(facts).cause == "CPU of mysqld"


def test_full_workers_behind_a_lock_are_not_the_cause():
    facts = _facts(slots=2, in_flight=2.0, sessions={"lock": 1.9})
    assert diagnose(facts).cause == causes.ROW_LOCKS.name


def test_busy_cpus_that_no_request_waits_for_are_not_the_cause():
    """Their workers sleep: twice as many would do twice as much."""
    facts = _facts(cpu=FULL_CPU, awaited={}, threads={"sleep": 1.9}, server_cpu=0.05, waited=0.02)
    assert diagnose(facts).cause == causes.SLOTS.name


def test_programs_that_take_only_idle_cpus_are_not_the_cause():
    facts = _facts(
        cpu=replace(FULL_CPU, taken=0.5, others=0.9), sessions={"lock": 1.9}, waited=0.05
    )
    assert diagnose(facts).cause == causes.ROW_LOCKS.name
    # The server uses most of it, and waits for none.
    own = replace(FULL_CPU, taken=0.3, others=0.3, services={"backend": 0.6})
    facts = _facts(cpu=own, awaited={}, threads={"sleep": 1.5}, waited=0.05, server_cpu=0.3)
    assert diagnose(facts).cause != causes.OTHERS.name


def test_postgres_that_computes_for_no_request_is_not_the_cause():
    """It vacuums, on full CPUs; requests are on the way to it."""
    busy = replace(FULL_CPU, services={"backend": 0.05, "postgres": 0.9})
    facts = _facts(cpu=busy, waited=0.02, server_cpu=0.05)
    assert diagnose(facts).cause == causes.SLOTS.name


def test_requests_that_queue_in_a_worker_are_behind_the_lock():
    """One of two processes has more of them than threads, and the other idle threads."""
    found = diagnose(
        _facts(
            slots=16,
            in_flight=16.0,
            awaited={"postgres": 8.3},
            sessions={"lock": 8.3},
            threads={"outside": 8.3, "lock": 7.0},
        )
    )
    assert (found.cause, found.certainty) == (causes.ROW_LOCKS.name, "likely")


def test_two_causes_that_are_close_are_both_named():
    facts = _facts(sessions={"lock": 1.0, "wal": 0.9})
    found = diagnose(facts)
    assert found.certainty == "unclear"
    assert causes.ROW_LOCKS.name in found.headline
    assert causes.WAL.name in found.headline


def test_failed_requests_of_an_idle_server_are_no_bottleneck():
    facts = _facts(
        **{"by_errors": True, "failed": 90, "slots": 16, "in_flight": 0.4, "queued": 0.0},
        **{"awaited": {}, "sessions": {}, "server_cpu": 0.3, "threads": {}},
    )
    found = diagnose(facts)
    assert (found.cause, found.certainty) == (None, "unclear")
    assert "requests failed, and no part of the target was full" in found.headline


def test_shed_requests_do_not_show_full_connections():
    facts = _facts(
        by_errors=True,
        **{"rejections": {"shed": 300}, "failed": 310, "max_connections": 20, "most_sessions": 16},
    )
    assert diagnose(facts).cause == causes.SLOTS.name


def test_waiting_threads_of_idle_clients_are_not_another_program():
    """One thread each for 400 connections, of which few have a request."""
    facts = _facts(
        **{"slots": None, "in_flight": 35.0, "queued": 0.0, "awaited": {}, "sessions": {}},
        threads={"outside": 460.0, "sleep": 33.0},
    )
    assert diagnose(facts).cause == causes.OUTSIDE.name
    assert "sleeps" in diagnose(facts).evidence[-1]


def test_server_without_limits_may_lack_virtual_users():
    facts = _facts(slots=None, dropped=3.0, sessions={"sleep": 1.9})
    found = diagnose(facts)
    assert found.certainty == "unclear"
    assert causes.VIRTUAL_USERS.name in found.headline


def test_too_few_looks_name_nothing():
    found = diagnose(_facts(looks=19))
    assert found.cause is None
    assert found.certainty == "unseen"
    assert "19 samples" in found.headline


@pytest.mark.parametrize(
    ("seen", "slots"),
    [
        # Others wait to be accepted: it has as many as it admits.
        ({"in_server": 4.1, "queued": 9.0}, 4),
        ({"in_server": 4.1, "queued": 0.2}, None),
        # Of 18 threads that ran, two wait for requests; 60 are in the server.
        ({"in_server": 60.0, "queued": 0.0, "active": 18.0, "threads": {"loop": 2.0}}, 16),
        # Idle threads of an event loop, which has sent 60 requests to a service.
        (
            {
                **{
                    "in_server": 60.0,
                    "queued": 0.0,
                    "active": 9.0,
                    "awaited": {"10.0.0.9:80": 60.0},
                },
                "threads": {"lock": 8.0, "loop": 1.0},
            },
            None,
        ),
        # Threads whose state is not told.
        ({"in_server": 60.0, "queued": 0.0, "active": 9.0, "threads": {"unknown": 9.0}}, None),
        # As many requests as threads: one more would find one.
        ({"in_server": 8.0, "queued": 0.0, "active": 18.0, "threads": {"loop": 2.0}}, None),
        # An event loop that nothing blocks.
        ({"in_server": 60.0, "queued": 0.0, "active": 1.0, "threads": {"loop": 0.9}}, None),
    ],
)
def test_slots_of_a_foreign_server_are_seen(seen, slots):
    assert seen_slots(_period(**({"awaited": {}} | seen))) == slots


@pytest.mark.parametrize(
    ("seen", "limits"),
    [
        # Two processes, each of which uses a CPU; and one that uses several.
        ({"queued": 0.0, "busiest": 0.98, "server_cpu": 1.9}, {"processes": 2}),
        ({"queued": 0.0, "busiest": 2.4, "server_cpu": 2.4}, {}),
    ],
)
def test_limits_of_a_foreign_server_are_seen(seen, limits):
    assert limits_of("http://127.0.0.1:9", load_settings({}), _period(**seen)) == limits


@pytest.mark.parametrize(
    ("half", "rate"),
    [
        # 2 workers, held 0.4 s by each request.
        ({"answered": 2.0, "in_flight": 0.8}, 5.0),
        # The CPU is nearer: 10 % at 0.4/s.
        ({"answered": 0.4, "in_flight": 0.05}, 4.0),
        # Of four CPUs, its two processes can use two.
        (
            {
                **{"answered": 0.5, "in_flight": 0.05, "server_cpu": 0.4},
                "cpu": replace(CALM_CPU, target=0.1),
            },
            2.5,
        ),
    ],
)
def test_capacity_follows_from_the_quiet_part(half, rate):
    assert predicted_rate(_facts(half=_period(**half))).rate == pytest.approx(rate)


@pytest.mark.parametrize(
    ("answered", "utilization", "wake", "rate"),
    [
        # 2 CPUs, 8 ms of CPU time for each request, 2 ms of it because it wakes one.
        (100.0, 0.4, 0.002, 333.33),
        # They hardly sleep: 8.5 ms, 0.6 ms of it because of that.
        (200.0, 0.85, 0.002, 253.16),
        # A short request of 1.5 ms needs 1 ms in any case.
        (100.0, 0.075, 0.002, 2000.0),
    ],
)
def test_request_of_a_quiet_load_wakes_a_cpu(answered, utilization, wake, rate):
    half = _period(
        **{"answered": answered, "cpu": replace(CALM_CPU, target=utilization)},
        **{"in_flight": 1.0, "server_cpu": 1.0, "awaited": {}, "threads": {}},
    )
    facts = _facts(half=half, slots=None, processes=None, cpus=2, wake=wake)
    assert predicted_rate(facts).rate == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize(
    ("calm", "why"),
    [
        # 180 of 200 ms at a service, by threads whose number is not known.
        (
            {"server_cpu": 0.2, "awaited": {"127.0.0.1:9000": 1.8}, "in_flight": 2.0},
            "a request waits 180 of 200 ms for what is no CPU",
        ),
        (
            {
                "server_cpu": 1.9,
                "awaited": {},
                "in_flight": 2.0,
                "cpu": replace(FULL_CPU, taken=0.3),
            },
            "other programs used 30% of the target's CPUs",
        ),
    ],
)
def test_what_is_not_explained_is_not_predicted(calm, why):
    quiet = {"answered": 10.0, "sessions": {}, "threads": {}, "queued": 0.0}
    facts = _facts(half=_period(**(quiet | calm)), slots=None, processes=None)
    assert (predicted_rate(facts).rate, predicted_rate(facts).why) == (None, why)
    assert diagnose(facts).not_predicted == why


def test_capacity_is_not_predicted_by_cpus_if_they_were_not_the_limit():
    """The quiet part was all CPU time, and then something else was full."""
    calm = {"server_cpu": 0.1, "in_flight": 0.1, "awaited": {}, "sessions": {}, "threads": {}}
    facts = _facts(**_SIXTEEN_THREADS, threads={"file": 16.0}, half=_period(**calm, queued=0.0))
    found = diagnose(facts)
    assert found.cause == causes.FILE_LOCK.name
    assert (found.predicted_rate, found.not_predicted) == (None, "a lock of a file is no CPU")
    assert predicted_rate(facts).rate is not None


def test_known_slots_behind_a_lock_predict_nothing():
    calm = {"answered": 10.0, "in_flight": 2.0, "sessions": {"lock": 1.5, "idle": 3.0}}
    half = _period(**calm, awaited={"postgres": 1.5}, queued=0.0, server_cpu=0.1)
    assert predicted_rate(_facts(half=half, slots=16)).rate is None
    free = replace(half, sessions={"sleep": 1.5})
    assert predicted_rate(_facts(half=free, slots=16)).rate == pytest.approx(80)


@pytest.mark.parametrize(
    ("server", "slots"), [("gunicorn-sync", 2), ("gunicorn-gthread", 16), ("uvicorn", None)]
)
def test_worker_slots(server, slots):
    assignments = [f"LAB_SERVER={server}", "LAB_WORKERS=2", "LAB_THREADS=8"]
    assert update_settings(load_settings({}), assignments).worker_slots == slots
