"""The checks of faults report every violation, and nothing for a correct run."""

import json
from dataclasses import replace

import pytest

from tests.faults.judging import Outage, Stored, judged
from tests.faults.ledger import Ledger, Page, Try, Wish, read

OUTAGE = Outage(began=100, repaired=105)
# Minimum number of bookings, and of pages.
DUE = 2


def _wish(night):
    return Wish("suite", f"2030-01-0{night}", f"2030-01-0{night + 1}", ("guest",))


@pytest.fixture
def sound():
    """Return two bookings, one at the second try, and two pages, the last after the repair."""
    tries = [
        Try(101, 101.1, 503, "overloaded", 1, key="a"),
        Try(102, 102.1, 201, key="a", booking="1"),
        Try(103, 103.1, 201, key="b", booking="2"),
    ]
    pages = [Page(104, 104.5, 200, cache="HIT"), Page(110, 110.5, 200, cache="HIT")]
    return Ledger({"a": _wish(1), "b": _wish(2)}, tries, pages)


@pytest.fixture
def stored():
    return Stored({"1": _wish(1), "2": _wish(2)}, overlapping=0)


def _complaints(ledger, stored, outage=OUTAGE):
    return judged("a fault", ledger, outage, stored, DUE).complaints()


def test_correct_run_has_no_complaints(sound, stored):
    assert _complaints(sound, stored) == []


def test_failure_during_unseen_fault_is_reported(sound, stored):
    found = _complaints(sound, stored, replace(OUTAGE, unseen=True))
    assert found == ["clients noticed: {'503': 1}"]


def test_few_shed_requests_during_unseen_fault_are_allowed(sound, stored):
    sound.wishes |= {str(n): _wish(3) for n in range(18)}
    found = judged("a fault", sound, replace(OUTAGE, unseen=True), stored, DUE)
    assert not any(said.startswith("clients noticed") for said in found.complaints())


def test_single_failure_by_unavailable_service_is_reported(sound, stored):
    sound.wishes |= {str(n): _wish(3) for n in range(18)}
    # The backend's error code when Postgres is unavailable.
    sound.tries[0] = replace(sound.tries[0], code="unavailable")
    found = judged("a fault", sound, replace(OUTAGE, unseen=True), stored, DUE)
    assert "clients noticed: {'503': 1}" in found.complaints()


def test_stale_mark_does_not_excuse_page_during_unseen_fault(sound, stored):
    sound.tries.pop(0)
    sound.pages.append(Page(104, 104.5, 200, cache="STALE", stale=3.6))
    assert _complaints(sound, stored, replace(OUTAGE, unseen=True)) == ["stale_beyond = 1"]


@pytest.mark.parametrize(
    "bookings",
    [
        {"1": _wish(1)},
        {"1": _wish(1), "2": _wish(3)},
        {"1": _wish(1), "2": replace(_wish(2), customers=())},
    ],
)
def test_missing_or_changed_booking_is_lost(sound, bookings):
    assert "lost = 1" in _complaints(sound, Stored(bookings, 0))


def test_booking_without_request_is_a_double(sound, stored):
    assert _complaints(sound, Stored({**stored.bookings, "3": _wish(2)}, 0)) == ["doubled = 1"]


def test_overlapping_bookings_are_reported(sound, stored):
    assert _complaints(sound, Stored(stored.bookings, 1)) == ["overlapping = 1"]


def test_booking_that_never_succeeded_is_reported(sound, stored):
    sound.wishes["c"] = _wish(4)
    assert _complaints(sound, stored) == ["1 of 3 bookings never succeeded"]


@pytest.mark.parametrize(
    ("page", "beyond"),
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
def test_page_may_be_as_old_as_promised(sound, stored, page, beyond):
    sound.pages.append(page)
    assert _complaints(sound, stored) == (["stale_beyond = 1"] if beyond else [])


def test_failed_page_is_reported(sound, stored):
    sound.pages.append(Page(104, 104.5, 503, "unavailable", 1))
    assert _complaints(sound, stored) == ["pages_failed = 1"]


@pytest.mark.parametrize(
    ("status", "code", "after"),
    [(500, "server_error", 1), (503, "overloaded", None), (503, None, 1), (502, None, None)],
)
def test_error_without_retry_information_is_reported(sound, stored, status, code, after):
    sound.tries.append(Try(104, 104.1, status, code, after, key="b"))
    (said,) = _complaints(sound, stored)
    assert said.startswith(f"answered {status}")


@pytest.mark.parametrize(("answered", "late"), [(114.9, False), (115.1, True)])
def test_recovery_ends_with_last_failure_after_repair(sound, stored, answered, late):
    sound.tries.append(Try(99, 140, 0, key="b"))
    sound.tries.append(Try(105.5, answered, 503, "overloaded", 1, key="b"))
    said = _complaints(sound, stored)
    assert said == (["failed until 10.1 s after the repair"] if late else [])


def test_missing_load_is_reported(sound, stored):
    assert "0 bookings and 0 pages of 2 were asked for" in _complaints(Ledger(), Stored({}, 0))
    sound.pages.pop(0)
    assert _complaints(sound, stored) == ["2 bookings and 1 pages of 2 were asked for"]


@pytest.mark.parametrize(("last", "told"), [(109.9, True), (110, False)])
def test_load_that_ends_soon_after_repair_is_reported(sound, stored, last, told):
    sound.pages[1] = replace(sound.pages[1], asked=last)
    said = ["the load ended 4.9 s after the repair"] if told else []
    assert _complaints(sound, stored) == said


def test_felt_fault_without_failures_is_reported(sound, stored):
    assert _complaints(sound, stored, replace(OUTAGE, felt=True)) == []
    sound.tries.pop(0)
    said = _complaints(sound, stored, replace(OUTAGE, felt=True))
    assert said == ["nobody noticed anything, so nothing was broken"]


def test_ledger_is_read_from_k6_output(tmp_path):
    answer = {"asked": 1000, "answered": 1500, "status": 201, "code": None, "retry_after": None}
    wish = {"suite": "s", "check_in": "2030-01-01", "check_out": "2030-01-02"}
    guests = {"customers": ["b", "a"]}
    lines = [
        {"line": "wish", "key": "a", **wish, **guests},
        {"line": "booking", "key": "a", **answer, "id": "1", "replayed": False},
        {"line": "page", "hotel": "h", **answer, "status": 200, "cache": "HIT", "stale_ms": 200},
    ]
    texts = ["setup is done, the load begins", *map(json.dumps, lines)]
    (tmp_path / "ledger").write_text("\n".join(json.dumps({"msg": text}) for text in texts))
    found = read(tmp_path / "ledger")
    assert found.wishes == {"a": Wish(**wish, customers=("a", "b"))}
    assert found.acknowledged == {"a": "1"}
    assert found.pages == [Page(1, 1.5, 200, cache="HIT", stale=0.2)]
