"""What a killed `lab` or a second one could do to a stack."""

import socket

import pytest

from load_lab.stack.database import copy_database
from load_lab.stack.locks import measurement_lock


def test_up_repairs_databases_that_an_older_version_left(lab, stack):
    """It closed a database while it copied, and `kill -9` left it closed for good."""
    statements = ("ALTER DATABASE hotel ALLOW_CONNECTIONS false", "CREATE DATABASE hotel_copy")
    terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'hotel'"
    stack.sql("postgres", *statements, terminate)
    result = lab("up")
    assert result.code == 0, result.err
    names = stack.sql("postgres", "SELECT datname FROM pg_database WHERE datallowconn")
    assert "hotel" in names
    assert "hotel_copy" not in names


def test_source_and_target_stay_open_during_a_copy(stack):
    copy_database(stack, "hotel", "hotel_pristine")
    copy_database(stack, "hotel_pristine", "hotel")
    rows = stack.sql("postgres", "SELECT datname FROM pg_database WHERE datname ~ '^hotel'")
    assert set(rows) == {"hotel", "hotel_pristine"}
    assert stack.sql("hotel", "SELECT count(*) FROM hotels_hotel") == ["4"]
    stack.sql("postgres", "DROP DATABASE hotel_pristine")


@pytest.mark.parametrize(
    "argv",
    [
        *(("k6", "smoke"), ("profile",), ("bench", "--quick"), ("overload",), ("soak",)),
        *(("calibrate", "--quick"), ("run", "cache-ladder", "--quick"), ("demo",), ("up",)),
    ],
    ids=lambda argv: argv[0],
)
def test_second_measurement_is_refused(argv, lab, stack):
    with measurement_lock():
        result = lab(*argv)
    assert result.is_one_message(1)
    assert "measures on this machine" in result.err
    assert "process" in result.err


def test_port_that_another_program_took_meanwhile_is_named(lab, stack):
    port = stack.settings().LAB_REDIS_PORT
    stack._supervision.stop_service("redis")
    with socket.create_server(("127.0.0.1", port)):
        result = lab("up")
    assert result.is_one_message(1), result.err
    assert str(port) in result.err
    assert lab("up").code == 0
    states = [service.state for service in stack.services() if service.name == "redis"]
    assert states[0] in ("starting", "running")
