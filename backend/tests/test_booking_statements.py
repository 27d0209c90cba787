"""manage.py booking_statements: the SQL for pgbench."""

import json
import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from hotels import selectors
from hotels.models import Booking
from idempotency.models import StoredAnswer
from lab_settings.kinds import Implementation
from psycopg.pq import ExecStatus

pytestmark = pytest.mark.django_db(transaction=True)


def _run_command():
    output = StringIO()
    call_command("booking_statements", stdout=output)
    return json.loads(output.getvalue())


def _as_pgbench(statement):
    """Send it like `pgbench -M prepared`: :name becomes $1, the values are text."""
    names = list(statement["values"])
    sql = re.sub(r"(?<!:):(\w+)", lambda match: f"${names.index(match[1]) + 1}", statement["sql"])
    values = [statement["values"][name].encode() for name in names]
    return connection.connection.pgconn.exec_params(sql.encode(), values)


def test_command_prints_one_statement_and_its_values(booking_data):
    (statement,) = _run_command()
    booking_values = {"id", "suite", "check_in", "check_out", "customers", "created_at"}
    key_values = {"key", "lock", "lifetime", "fingerprint", "status", "body"}
    assert set(statement["values"]) == booking_values | key_values


def test_command_creates_no_booking(booking_data, hotel):
    before = selectors.hotel_version(hotel.pk)
    _run_command()
    assert (Booking.objects.count(), StoredAnswer.objects.count()) == (0, 0)
    assert selectors.hotel_version(hotel.pk) == before


def test_printed_statement_equals_statement_of_a_request(api, booking_data, caches):
    caches.on(LAB_BOOKING=Implementation.FAST)
    statements = []

    def record(execute, statement, *arguments):
        statements.append(statement)
        return execute(statement, *arguments)

    with connection.execute_wrapper(record):
        api.post("/api/booking/", booking_data, format="json", headers={"Idempotency-Key": "k"})
    expected = [re.sub(r"%\((\w+)\)s", r":\1", statement).strip() for statement in statements]
    assert [statement["sql"] for statement in _run_command()] == expected


def test_postgres_accepts_printed_statement_and_books(booking_data):
    (statement,) = _run_command()
    connection.ensure_connection()
    result = _as_pgbench(statement)
    assert result.status == ExecStatus.TUPLES_OK, result.error_message
    assert str(Booking.objects.get().pk) == statement["values"]["id"]
    assert StoredAnswer.objects.get().key == statement["values"]["key"]


def test_missing_data_error_names_load_db(db):
    with pytest.raises(CommandError, match="load_db"):
        _run_command()
