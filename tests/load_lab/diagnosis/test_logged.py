"""The causes that logged errors name, each row of the tables alone."""

from dataclasses import replace

import pytest

from load_lab.diagnosis import causes
from load_lab.diagnosis.diagnosis import diagnose
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.logged import CAUSES, STATES, SYMPTOMS, logged_causes, logged_texts
from load_lab.diagnosis.period import Period
from load_lab.machine.cpu_use import CpuUse
from load_lab.machine.logged_errors import LoggedError, LoggedErrors
from load_lab.results.result import ErrorStart

IDLE = Period(
    answered=40.0,
    dropped=0.0,
    looks=60,
    cpu=CpuUse(0, target=0.1, load=0.2, services={"backend": 0.05}),
    in_flight=0.2,
    queued=0.0,
    threads={},
    sessions={},
    awaited={},
    sent={},
    server_cpu=0.05,
)
FULL = replace(IDLE, in_flight=16.0, queued=9.0, threads={"sleep": 15.0})
LOCKED = LoggedError("server", "sqlite3.OperationalError", "", "database is locked", 400)
NO_SPACE = LoggedError("postgres", "DiskFull", "53100", "could not extend file …: No space", 400)


def _facts(*errors, seen=IDLE, left_out=0, **values):
    known = {"by_errors": True, "failed": 400, "slots": 16, "processes": 2} | values
    return Facts(seen, logged=LoggedErrors(errors, left_out), **known)


def _names(facts):
    rows = {**STATES, **CAUSES, **SYMPTOMS}
    return [cause.name for cause, _ in logged_causes(facts, rows)]


@pytest.mark.parametrize(("key", "cause"), (STATES | CAUSES).items())
def test_row_names_its_cause(key, cause):
    """By its code and by its message, also while workers are full."""
    for error in (LoggedError("server", "a.B", key, "", 300), replace(LOCKED, message=key)):
        for seen in (IDLE, FULL):
            facts = _facts(error, seen=seen)
            assert _names(facts) == [cause.name]
            assert diagnose(facts).cause == cause.name


@pytest.mark.parametrize("key", SYMPTOMS)
def test_row_of_a_symptom_names_its_cause_while_nothing_is_full(key):
    error = LoggedError("server", key if "." in key else "a.B", "" if "." in key else key, "", 300)
    facts = _facts(error)
    assert _names(facts) == [SYMPTOMS[key].name]
    assert diagnose(facts).cause == SYMPTOMS[key].name
    assert diagnose(_facts(error, seen=FULL)).cause == causes.SLOTS.name


def test_evidence_has_the_log_and_the_error_and_both_counts():
    found = diagnose(_facts(LOCKED))
    assert (found.cause, found.certainty) == ("SQLite's write lock", "likely")
    assert found.evidence == (
        "the app's log has sqlite3.OperationalError (database is locked) 400 times; "
        "400 requests failed",
    )
    assert "journal_mode=WAL" in found.remedy
    full = diagnose(_facts(NO_SPACE))
    assert full.cause == "a full disk"
    assert full.evidence[0].startswith(
        "Postgres's log has DiskFull (53100: could not extend file …: No space) 400 times"
    )


def test_errors_of_two_kinds_are_added_and_of_two_logs_are_not():
    half = [replace(LOCKED, kind=kind, count=110) for kind in ("a.B", "c.D")]
    assert _names(_facts(*half)) == ["SQLite's write lock"]
    two_logs = [replace(NO_SPACE, source=source, count=110) for source in ("server", "postgres")]
    assert not _names(_facts(*two_logs))


@pytest.mark.parametrize(
    "values",
    [
        # Retries slow requests that succeed.
        {"by_errors": False},
        {"by_errors": False, "failed": 0},
        # Most requests failed otherwise.
        {"failed": 900},
        # Most errors failed no request.
        {"failed": 90},
    ],
)
@pytest.mark.parametrize("error", [LOCKED, NO_SPACE, replace(LOCKED, message="", code="55P03")])
def test_errors_that_do_not_explain_the_failed_requests_are_no_cause(values, error):
    assert not _names(_facts(error, **values))


def test_busy_machine_does_not_hide_a_full_disk():
    busy = replace(IDLE, waited=1.4, cpu=replace(IDLE.cpu, target=0.99, taken=0.5, others=1.0))
    assert diagnose(_facts(NO_SPACE, seen=busy)).cause == "a full disk"
    assert diagnose(_facts(LOCKED, seen=busy)).cause == causes.OTHERS.name


def test_errors_without_a_row_are_evidence_where_nothing_is_named():
    errors = (
        LoggedError("server", "shop.Declined", "", "", 300),
        LoggedError("server", "OSError", "errno 2", "No such file or directory", 90),
        LoggedError("postgres", "UniqueViolation", "23505", "", 9),
        LoggedError("server", "KeyError", "", "", 1),
    )
    texts = (
        "the app's log has shop.Declined 300 times",
        "the app's log has OSError (errno 2: No such file or directory) 90 times",
        "Postgres's log has UniqueViolation (23505) 9 times",
        "5 more kinds of errors in the logs",
    )
    facts = _facts(*errors, left_out=4)
    assert logged_texts(facts) == texts
    found = diagnose(facts)
    assert found.cause is None
    assert found.headline == "not clear: requests failed, and no part of the target was full"
    assert found.evidence == texts
    began = diagnose(replace(facts, began=ErrorStart(after=9, operations=4, of=4, lasting=True)))
    assert began.is_no_limit
    assert began.evidence == texts


def test_cause_that_began_at_one_moment_is_named():
    began = ErrorStart(after=9, operations=4, of=4, lasting=True)
    assert diagnose(_facts(NO_SPACE, began=began)).cause == "a full disk"


def test_requests_that_fail_after_a_time_limit_are_not_slow_alone():
    """SQLite waits for five seconds, if nothing else is said."""
    facts = _facts(LOCKED, first_p95=5.1, begin=replace(IDLE, in_flight=0.5))
    assert diagnose(facts).cause == "SQLite's write lock"
    assert diagnose(replace(facts, logged=LoggedErrors())).cause == causes.ONE_REQUEST.name


def test_used_up_connections_are_named_by_the_log():
    error = LoggedError("postgres", "TooManyConnections", "53300", "sorry", 350)
    assert diagnose(_facts(error)).cause == causes.MAX_CONNECTIONS.name


def test_requests_that_nginx_refused_come_first():
    facts = _facts(replace(LOCKED, count=200), rejections={"limit": 200})
    assert diagnose(facts).cause == causes.REQUEST_LIMIT.name
