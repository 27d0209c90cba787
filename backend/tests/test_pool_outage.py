"""The pool while Postgres refuses, and when it is back: nobody waits for what does not come."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from config.postgres.pool import NO_CONNECTION, options
from django.db import connection
from psycopg import OperationalError
from psycopg_pool import ConnectionPool

from lab.stack.native.supervision import wait_for

TIMEOUT = 8
# Refused within moments, on whatever machine.
AT_ONCE = 2
NOBODY = 1


class Postgres:
    """Where the pool finds it: the real one, or a port at which nobody listens."""

    def __init__(self) -> None:
        self.away = False

    def __call__(self) -> dict[str, object]:
        found = connection.get_connection_params()
        found.pop("cursor_factory", None)
        return {**found, "autocommit": True, **({"port": NOBODY} if self.away else {})}


@pytest.fixture
def postgres(stack) -> Postgres:
    return Postgres()


def _pool(postgres, size):
    check = ConnectionPool.check_connection
    return ConnectionPool(kwargs=postgres, check=check, open=False, **options(size, TIMEOUT))


def _refused(pool) -> float:
    """Seconds until the pool said that there is none."""
    began = time.monotonic()
    with pytest.raises(OperationalError, match=NO_CONNECTION):
        pool.getconn()
    return time.monotonic() - began


def test_who_waits_is_told_at_once_and_served_as_soon_as_postgres_is_back(postgres):
    with _pool(postgres, size=1) as pool:
        with pool.connection() as lost:
            postgres.away = True
            lost.close()
        # So long that a pool which doubles its pauses would have come to one of seconds.
        ends = time.monotonic() + 4
        while time.monotonic() < ends:
            assert _refused(pool) < AT_ONCE
        postgres.away = False
        began = time.monotonic()
        pool.putconn(pool.getconn())
        assert time.monotonic() - began < AT_ONCE


def test_a_pool_that_begins_without_postgres_has_it_later(postgres):
    postgres.away = True
    with _pool(postgres, size=2) as pool:
        assert _refused(pool) < AT_ONCE
        postgres.away = False
        pool.putconn(pool.getconn())


def test_a_connection_that_is_in_use_is_waited_for(postgres):
    with _pool(postgres, size=2) as pool, ThreadPoolExecutor(1) as threads:
        pool.wait()
        used = pool.getconn()
        postgres.away = True
        waits = threads.submit(pool.getconn)
        tried = "The pool's tries for another"
        wait_for(lambda: _errors(pool) >= 2 and _size(pool) == 1, seconds=5, what=tried)
        assert not waits.done()
        pool.putconn(used)
        assert waits.result() is used
        pool.putconn(used)


@pytest.fixture
def pooled(stack):
    """Connections of one pool, as Django opens them; more than one is in use at a time."""
    handling = {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False}
    first = connection.copy()
    first.settings_dict |= handling
    first.settings_dict["OPTIONS"]["pool"] = options(4, TIMEOUT)
    found = [first, *(first.copy() for _ in range(3))]
    yield found
    for each in found:
        each.close()
    first.close_pool()


def _pid(one) -> int:
    with one.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


@pytest.mark.django_db(transaction=True)
def test_however_many_connections_were_lost_nobody_pauses(pooled, monkeypatch):
    pids = [_pid(each) for each in pooled]
    assert len(set(pids)) == 4
    for each in pooled:
        each.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s) AS pid", [pids])
    paused = []
    monkeypatch.setattr("psycopg_pool.pool.sleep", paused.append)
    began = time.monotonic()
    assert _pid(pooled[0]) not in pids
    assert time.monotonic() - began < AT_ONCE
    assert paused == []


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_lives_is_taken_without_a_question(pooled):
    # All of them: a pool that grows meanwhile hands out the new one.
    pids = {_pid(each) for each in pooled}
    for each in pooled:
        each.close()
    pid = _pid(pooled[0])
    assert pid in pids
    pooled[0].close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [pid])
        assert cursor.fetchone() == ("SELECT pg_backend_pid()",)


def _errors(pool) -> int:
    return pool.get_stats().get("connections_errors", 0)


def _size(pool) -> int:
    return pool.get_stats()["pool_size"]
