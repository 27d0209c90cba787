"""The pool during and after an outage of Postgres: requests fail at once instead of waiting."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from config.postgres.pool import NO_CONNECTION, options
from django.db import connection
from psycopg import OperationalError
from psycopg_pool import ConnectionPool
from psycopg_pool.pool import AddConnection

from load_lab.stack.native.supervision import wait_for

TIMEOUT = 8
UNUSED_PORT = 1


class Postgres:
    """Connection parameters of the real server, or of a port without a listener."""

    def __init__(self) -> None:
        self.is_down = False

    def __call__(self) -> dict[str, object]:
        parameters = connection.get_connection_params()
        parameters.pop("cursor_factory", None)
        return {**parameters, "autocommit": True, **({"port": UNUSED_PORT} if self.is_down else {})}


@pytest.fixture
def postgres(stack) -> Postgres:
    return Postgres()


def _pool(postgres, size):
    check = ConnectionPool.check_connection
    return ConnectionPool(kwargs=postgres, check=check, open=False, **options(size, TIMEOUT))


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """Return the pauses of the pool before its next attempt to connect, in seconds."""
    found: list[float] = []
    schedule = ConnectionPool.schedule_task

    def record(pool, task, delay):
        if isinstance(task, AddConnection):
            found.append(delay)
        schedule(pool, task, delay)

    monkeypatch.setattr(ConnectionPool, "schedule_task", record)
    return found


def _require_failure(pool) -> None:
    """Check that a request fails because the pool can't connect, not at its timeout."""
    with pytest.raises(OperationalError, match=NO_CONNECTION):
        pool.getconn()


def test_requests_fail_at_once_and_recover_with_postgres(postgres, pauses):
    with _pool(postgres, size=1) as pool:
        with pool.connection() as client:
            postgres.is_down = True
            client.close()
        for _ in range(20):
            _require_failure(pool)
        postgres.is_down = False
        pool.putconn(pool.getconn())
    assert set(pauses) == {0}


def test_pool_started_without_postgres_connects_later(postgres, pauses):
    postgres.is_down = True
    with _pool(postgres, size=2) as pool:
        _require_failure(pool)
        postgres.is_down = False
        pool.putconn(pool.getconn())
    assert set(pauses) == {0}


def test_request_waits_for_a_connection_in_use(postgres):
    with _pool(postgres, size=2) as pool, ThreadPoolExecutor(1) as threads:
        pool.wait()
        client = pool.getconn()
        postgres.is_down = True
        future = threads.submit(pool.getconn)
        attempts = "The pool's tries for another"
        wait_for(lambda: _errors(pool) >= 2 and _size(pool) == 1, seconds=5, what=attempts)
        assert not future.done()
        pool.putconn(client)
        assert future.result() is client
        pool.putconn(client)


@pytest.fixture
def connections(stack):
    """Yield connections of one pool, as Django opens them, several of them in use at a time."""
    handling = {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False}
    first = connection.copy()
    first.settings_dict |= handling
    first.settings_dict["OPTIONS"]["pool"] = options(4, TIMEOUT)
    wrappers = [first, *(first.copy() for _ in range(3))]
    yield wrappers
    for each in wrappers:
        each.close()
    first.close_pool()


def _pid(one) -> int:
    with one.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


@pytest.mark.django_db(transaction=True)
def test_lost_connections_cause_no_pause(connections, monkeypatch, pauses):
    pids = [_pid(each) for each in connections]
    assert len(set(pids)) == 4
    for each in connections:
        each.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s) AS pid", [pids])
    sleeps = []
    monkeypatch.setattr("psycopg_pool.pool.sleep", sleeps.append)
    assert _pid(connections[0]) not in pids
    assert sleeps == []
    assert set(pauses) <= {0}


@pytest.mark.django_db(transaction=True)
def test_live_connection_is_used_without_a_query(connections):
    # Use all of them: a pool that grows during the test returns the new connection.
    pids = {_pid(each) for each in connections}
    for each in connections:
        each.close()
    pid = _pid(connections[0])
    assert pid in pids
    connections[0].close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [pid])
        assert cursor.fetchone() == ("SELECT pg_backend_pid()",)


def _errors(pool) -> int:
    return pool.get_stats().get("connections_errors", 0)


def _size(pool) -> int:
    return pool.get_stats()["pool_size"]
