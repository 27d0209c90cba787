"""Row locks, verified with pg_locks in Postgres."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connection, connections, transaction
from django.test import Client
from lab_settings.kinds import Views
from workbench import work
from workbench.data import LOCK_ROWS
from workbench.models import LockRow

from load_lab.stack.native.supervision import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

PREFIXES = {Views.SYNC: "/workbench", Views.ASYNC: "/async/workbench"}


@pytest.fixture(autouse=True)
def rows(db):
    LockRow.objects.bulk_create(LockRow(pk=n, name=f"row {n}") for n in range(1, LOCK_ROWS + 1))


@pytest.fixture(params=list(Views))
def request_route(request):
    """Yield a function that requests a route in a separate thread."""
    pool = ThreadPoolExecutor(2)

    def get(route):
        try:
            return Client().get(f"{PREFIXES[request.param]}/{route}/?seconds=0").json()["row"]
        finally:
            connections.close_all()

    yield lambda route: pool.submit(get, route)
    pool.shutdown()


@contextmanager
def _lock(row):
    """Lock the row, like a request that sleeps."""
    with transaction.atomic():
        LockRow.objects.select_for_update().get(pk=row)
        yield


def _count_waiting():
    """Return how many processes wait for a lock of this connection."""
    with connection.cursor() as cursor:
        # Not pg_stat_activity, whose snapshot stays the same for the whole transaction.
        cursor.execute(
            "SELECT count(DISTINCT pid) FROM pg_locks "
            "WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return cursor.fetchone()[0]


def test_requests_for_the_same_row_wait(request_route):
    with _lock(1):
        answer = request_route("row-lock")
        wait_for(lambda: _count_waiting() == 1, seconds=10, what="The queue")
        assert not answer.done()
    assert answer.result(timeout=10) == 1


def test_requests_for_different_rows_do_not_wait(request_route, monkeypatch):
    monkeypatch.setattr(work.random, "randint", lambda _low, _high: 2)
    with _lock(1):
        assert request_route("random-row-lock").result(timeout=10) == 2
    with _lock(2):
        answer = request_route("random-row-lock")
        wait_for(lambda: _count_waiting() == 1, seconds=10, what="The queue")
        assert not answer.done()
    assert answer.result(timeout=10) == 2


def test_random_row_is_one_of_a_hundred(monkeypatch):
    calls = []
    monkeypatch.setattr(work.random, "randint", lambda *bounds: calls.append(bounds) or 1)
    work.sleep_holding_random_row(0)
    assert calls == [(1, LOCK_ROWS)]
    assert LOCK_ROWS == 100
