"""The checks of faults report every violation, and nothing for a correct run."""

import json
from dataclasses import replace

import pytest

from tests.faults.evaluation import Outage, StoredBookings, evaluate
from tests.faults.ledger import Booking, Ledger, Page, Try, read

OUTAGE = Outage(began=100, repaired=105)
# Minimum number of bookings, and of pages.
DUE = 2


def _booking(night):
    return Booking("suite", f"2030-01-0{night}", f"2030-01-0{night + 1}", ("guest",))


@pytest.fixture
def ledger():
    """Return two bookings, one at the second try, and two pages, the last after the repair."""
    tries = [
        Try(101, 101.1, 503, "overloaded", 1, key="a"),
        Try(102, 102.1, 201, key="a", booking="1"),
        Try(103, 103.1, 201, key="b", booking="2"),
    ]
    pages = [Page(104, 104.5, 200, cache="HIT"), Page(110, 110.5, 200, cache="HIT")]
    return Ledger({"a": _booking(1), "b": _booking(2)}, tries, pages)


@pytest.fixture
def stored():
    return StoredBookings({"1": _booking(1), "2": _booking(2)}, overlapping=0)


def _violations(ledger, stored, outage=OUTAGE):
    return evaluate("a fault", ledger, outage, stored, DUE).violations()


def test_correct_run_has_no_violations(ledger, stored):
    assert _violations(ledger, stored) == []


def test_failure_during_unseen_fault_is_reported(ledger, stored):
    violations = _violations(ledger, stored, replace(OUTAGE, unseen=True))
    assert violations == ["clients noticed: {'503': 1}"]


def test_few_shed_requests_during_unseen_fault_are_allowed(ledger, stored):
    ledger.bookings |= {str(n): _booking(3) for n in range(18)}
    result = evaluate("a fault", ledger, replace(OUTAGE, unseen=True), stored, DUE)
    assert not any(violation.startswith("clients noticed") for violation in result.violations())


def test_single_failure_by_unavailable_service_is_reported(ledger, stored):
    ledger.bookings |= {str(n): _booking(3) for n in range(18)}
    # The backend's error code when Postgres is unavailable.
    ledger.tries[0] = replace(ledger.tries[0], code="unavailable")
    result = evaluate("a fault", ledger, replace(OUTAGE, unseen=True), stored, DUE)
    assert "clients noticed: {'503': 1}" in result.violations()


def test_stale_mark_does_not_excuse_page_during_unseen_fault(ledger, stored):
    ledger.tries.pop(0)
    ledger.pages.append(Page(104, 104.5, 200, cache="STALE", stale=3.6))
    assert _violations(ledger, stored, replace(OUTAGE, unseen=True)) == ["stale_beyond = 1"]


@pytest.mark.parametrize(
    "bookings",
    [
        {"1": _booking(1)},
        {"1": _booking(1), "2": _booking(3)},
        {"1": _booking(1), "2": replace(_booking(2), customers=())},
    ],
)
def test_missing_or_changed_booking_is_lost(ledger, bookings):
    assert "lost = 1" in _violations(ledger, StoredBookings(bookings, 0))


def test_booking_without_request_is_a_double(ledger, stored):
    assert _violations(ledger, StoredBookings({**stored.bookings, "3": _booking(2)}, 0)) == [
        "doubled = 1"
    ]


def test_overlapping_bookings_are_reported(ledger, stored):
    assert _violations(ledger, StoredBookings(stored.bookings, 1)) == ["overlapping = 1"]


def test_booking_that_never_succeeded_is_reported(ledger, stored):
    ledger.bookings["c"] = _booking(4)
    assert _violations(ledger, stored) == ["1 of 3 bookings never succeeded"]


@pytest.mark.parametrize(
    ("page", "too_old"),
    [
        (Page(104, 104.5, 200, cache="HIT", stale=3.4), False),
        (Page(104, 104.5, 200, cache="HIT", stale=3.6), True),
        (Page(104, 104.5, 200, cache="STALE", stale=63.4), False),
        (Page(104, 104.5, 200, cache="STALE", stale=63.6), True),
        # Before the outage, and long after it. A mark does not excuse these.
        (Page(98, 98.5, 200, cache="STALE", stale=3.6), True),
        (Page(107.1, 107.6, 200, cache="STALE", stale=3.6), True),
    ],
)
def test_page_may_be_as_old_as_promised(ledger, stored, page, too_old):
    ledger.pages.append(page)
    assert _violations(ledger, stored) == (["stale_beyond = 1"] if too_old else [])


def test_failed_page_is_reported(ledger, stored):
    ledger.pages.append(Page(104, 104.5, 503, "unavailable", 1))
    assert _violations(ledger, stored) == ["pages_failed = 1"]


@pytest.mark.parametrize(
    ("status", "code", "after"),
    [(500, "server_error", 1), (503, "overloaded", None), (503, None, 1), (502, None, None)],
)
def test_error_without_retry_information_is_reported(ledger, stored, status, code, after):
    ledger.tries.append(Try(104, 104.1, status, code, after, key="b"))
    (violation,) = _violations(ledger, stored)
    assert violation.startswith(f"answered {status}")


@pytest.mark.parametrize(("end", "is_late"), [(114.9, False), (115.1, True)])
def test_recovery_ends_with_last_failure_after_repair(ledger, stored, end, is_late):
    ledger.tries.append(Try(99, 140, 0, key="b"))
    ledger.tries.append(Try(105.5, end, 503, "overloaded", 1, key="b"))
    violations = _violations(ledger, stored)
    assert violations == (["failed until 10.1 s after the repair"] if is_late else [])


def test_missing_load_is_reported(ledger, stored):
    assert "0 bookings and 0 pages of 2 were asked for" in _violations(
        Ledger(), StoredBookings({}, 0)
    )
    ledger.pages.pop(0)
    assert _violations(ledger, stored) == ["2 bookings and 1 pages of 2 were asked for"]


@pytest.mark.parametrize(("last", "is_short"), [(109.9, True), (110, False)])
def test_load_that_ends_soon_after_repair_is_reported(ledger, stored, last, is_short):
    ledger.pages[1] = replace(ledger.pages[1], sent_at=last)
    violations = ["the load ended 4.9 s after the repair"] if is_short else []
    assert _violations(ledger, stored) == violations


def test_felt_fault_without_failures_is_reported(ledger, stored):
    assert _violations(ledger, stored, replace(OUTAGE, felt=True)) == []
    ledger.tries.pop(0)
    violations = _violations(ledger, stored, replace(OUTAGE, felt=True))
    assert violations == ["nobody noticed anything, so nothing was broken"]


def test_ledger_is_read_from_k6_output(tmp_path):
    answer = {"asked": 1000, "answered": 1500, "status": 201, "code": None, "retry_after": None}
    booking = {"suite": "s", "check_in": "2030-01-01", "check_out": "2030-01-02"}
    guests = {"customers": ["b", "a"]}
    lines = [
        {"line": "wish", "key": "a", **booking, **guests},
        {"line": "booking", "key": "a", **answer, "id": "1", "replayed": False},
        {"line": "page", "hotel": "h", **answer, "status": 200, "cache": "HIT", "stale_ms": 200},
    ]
    texts = ["setup is done, the load begins", *map(json.dumps, lines)]
    (tmp_path / "ledger").write_text("\n".join(json.dumps({"msg": text}) for text in texts))
    ledger = read(tmp_path / "ledger")
    assert ledger.bookings == {"a": Booking(**booking, customers=("a", "b"))}
    assert ledger.acknowledged == {"a": "1"}
    assert ledger.pages == [Page(1, 1.5, 200, cache="HIT", stale=0.2)]
