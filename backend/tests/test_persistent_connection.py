"""config.postgres: persistent connections are checked reliably without a query."""

import select

import psycopg
import pytest
from config.postgres import prepared
from django.db import connection, connections
from django.db.backends.postgresql import base
from hotels import selectors

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def checks(monkeypatch):
    """Return a list with one entry per health check of Django (`SELECT 1`)."""
    real, calls = base.DatabaseWrapper.is_usable, []

    def is_usable(self):
        calls.append(1)
        return real(self)

    monkeypatch.setattr(base.DatabaseWrapper, "is_usable", is_usable)
    return calls


def _pid() -> int:
    return prepared.row("SELECT pg_backend_pid()", {})[0]


def _terminate(pid: int) -> None:
    """Terminate the Postgres process from another connection; return after its end."""
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        assert cursor.fetchone() == (True,)
    other.close()


def test_idle_connection_is_usable_without_a_query(checks):
    _pid()
    assert connection.is_usable()
    assert checks == []


def test_connection_terminated_by_postgres_is_not_usable(checks):
    _terminate(_pid())
    assert not connection.is_usable()
    assert checks == [1]
    connection.close()


def test_connection_closed_by_the_client_is_not_usable():
    _pid()
    connection.connection.close()
    assert not connection.is_usable()
    connection.close()


def test_connection_with_pending_data_is_queried(checks):
    """A notification is not a disconnect: Django's check reads it, the connection stays open."""
    with connection.cursor() as cursor:
        cursor.execute("LISTEN news")
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("NOTIFY news")
    other.close()
    select.select([connection.connection.fileno()], [], [], 10)
    assert connection.is_usable()
    assert checks == [1]
    assert connection.is_usable()
    assert checks == [1]


def test_connection_in_a_transaction_is_queried(checks):
    connection.ensure_connection()
    connection.set_autocommit(False)
    _pid()
    assert connection.is_usable()
    assert checks == [1]
    connection.rollback()
    connection.set_autocommit(True)


@pytest.mark.parametrize("first", ["prepared", "orm"])
def test_next_request_opens_another_connection(hotel, first):
    """CONN_HEALTH_CHECKS: the first use in a request detects the lost connection."""
    queries = {"prepared": lambda: selectors.hotel_version(hotel.pk), "orm": hotel.refresh_from_db}
    pid = _pid()
    _terminate(pid)
    # Django does this between two requests.
    connection.close_if_unusable_or_obsolete()
    queries[first]()
    assert _pid() != pid


def test_statement_is_prepared_after_five_executions():
    def prepared_count() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_prepared_statements")
            return cursor.fetchone()[0]

    connections.close_all()
    for times in range(1, 9):
        assert prepared.row("SELECT %(n)s::int + 1", {"n": 3}) == (4,)
        assert prepared_count() == (times > 5)


def test_orm_prepares_no_statements(hotel):
    connections.close_all()
    for _ in range(8):
        type(hotel).objects.filter(pk=hotel.pk).exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert cursor.fetchone() == (0,)


def test_postgres_error_is_raised_as_django_error():
    from django.db import ProgrammingError

    with pytest.raises(ProgrammingError) as error:
        prepared.row("SELECT nothing_of_that_name", {})
    assert isinstance(error.value.__cause__, psycopg.errors.UndefinedColumn)
