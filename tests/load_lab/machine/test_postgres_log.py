"""The errors in the log of a real Postgres, without what they tell of persons."""

import pytest

from load_lab.errors import LabError
from load_lab.machine.logged_errors import logged_errors
from load_lab.machine.logs import Lines
from load_lab.stack.native.supervision import wait_for
from tests.support.little_disk import little_tablespace

PERSON = "john.smith@example.org"
# What each code is the error of.
VALUES = {
    "22P02": f"SELECT '{PERSON}'::integer",
    "P0001": f"DO $$BEGIN RAISE '{PERSON}' USING DETAIL = '{PERSON}', HINT = '{PERSON}'; END$$",
    "42703": f'SELECT "{PERSON}"',
    "23505": (
        "CREATE TEMPORARY TABLE person (name text UNIQUE);"
        f"INSERT INTO person VALUES ('{PERSON}'), ('{PERSON}')"
    ),
}
FILL = "SELECT repeat('x', 2000) FROM generate_series(1, 9999)"


def _errors(engine, statements):
    """Return the errors that statements leave in Postgres's log, by their code, and the log."""
    log, text = engine._state.logs / "postgres.log", engine.new_log("postgres")
    start = log.stat().st_size
    for statement in statements.values():
        with pytest.raises(LabError):
            engine.sql("postgres", statement)
    wait_for(
        lambda: all(f" {code} ERROR:" in log.read_text()[start:] for code in statements),
        seconds=5,
        what=f"{list(statements)} in Postgres's log",
    )
    found = logged_errors([("postgres", Lines(text))]).errors
    return {error.code: error for error in found}, log.read_text()[start:]


def test_errors_about_values_have_no_text(stack):
    found, log = _errors(stack, VALUES)
    assert log.count(PERSON) >= len(VALUES)
    assert {code: found[code].message for code in VALUES} == dict.fromkeys(VALUES, "")
    assert found["23505"].kind == "UniqueViolation"
    assert PERSON not in repr(found)


def test_full_disk_of_postgres_is_in_its_log(stack):
    with little_tablespace(stack):
        found, _ = _errors(stack, {"53100": f"CREATE TABLE filled TABLESPACE little AS {FILL}"})
    assert found["53100"].kind == "DiskFull"
    assert found["53100"].message.startswith("could not extend file …")
    assert "pg_tblspc" not in repr(found)
