"""LAB_SHED: requests that waited too long are rejected before any work."""

import time

import pytest
from lab_settings.kinds import Direction, RedisCache, Switch
from ops import shedding as module
from ops.shedding import Queue
from prometheus_client import REGISTRY

pytestmark = pytest.mark.django_db


def _since(seconds: float) -> dict[str, str]:
    """Return the header in the format of Nginx's $msec."""
    return {"X-Request-Start": f"{time.time() - seconds:.3f}"}


def _shed_count() -> float:
    return REGISTRY.get_sample_value("lab_shed_requests_total") or 0


def _queue(now: float) -> Queue:
    """Return the queue of a process that has served requests for a long time."""
    queue = Queue(now)
    queue._first_at = float("-inf")
    return queue


@pytest.fixture
def shedding(caches, monkeypatch) -> None:
    """Enable shedding with a queue that has been standing for a long time."""
    queue = _queue(time.monotonic())
    queue._empty_at = float("-inf")
    monkeypatch.setattr(module, "_queue", queue)
    caches.on(LAB_SHED=Switch.ON, LAB_REDIS_CACHE=RedisCache.VERSIONED)


def test_request_that_waited_too_long_is_503_without_work(
    api, shedding, caches, pages, booking_data, django_assert_num_queries
):
    before, redis = _shed_count(), caches.counts("redis")
    labels = {"route": "hotel_detail", "method": "GET", "status": "503"}
    responses = REGISTRY.get_sample_value("lab_http_requests_total", labels) or 0
    with django_assert_num_queries(0):
        answers = [
            *(api.get(path, headers=_since(0.4)) for path in pages),
            api.post("/api/booking/", booking_data, format="json", headers=_since(5)),
        ]
    for answer in answers:
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert answer.json()["error"]["code"] == "overloaded"
    assert _shed_count() == before + 3
    assert redis() == {}
    assert REGISTRY.get_sample_value("lab_http_requests_total", labels) == responses + 1


def test_burst_may_wait_longer_than_a_standing_queue(api, shedding, pages, monkeypatch):
    # Longer than the delays of a busy machine.
    monkeypatch.setattr(module, "BURST_WAIT_SECONDS", 100)
    monkeypatch.setattr(module, "STANDING_SECONDS", 100)

    def status(seconds):
        return api.get(pages[1], headers=_since(seconds)).status_code

    assert status(50) == 503
    # This request did not wait: the queue was empty, so the next requests are a burst.
    assert status(-1) == 200
    assert [status(50), status(150)] == [200, 503]


@pytest.mark.parametrize(
    ("since_empty", "wait", "too_long"),
    [(0.9, 0.69, False), (0.9, 0.71, True), (1.1, 0.29, False), (1.1, 0.31, True)],
)
def test_wait_limit_depends_on_when_the_queue_was_empty(since_empty, wait, too_long):
    queue = _queue(99)
    assert not queue.is_too_long(0.04, 100)
    # These waited in a queue, so they do not change when it was last empty.
    assert not queue.is_too_long(0.06, 100.5)
    assert not queue.is_too_long(0.06, 100 + since_empty)
    assert queue.is_too_long(wait, 100 + since_empty) == too_long


def test_requests_waiting_for_server_start_count_as_burst():
    queue = Queue(98)
    assert not queue.is_too_long(5, 100)
    assert not queue.is_too_long(5, 100.69)
    assert queue.is_too_long(5, 100.71)
    assert queue.is_too_long(0.8, 101)


def test_queue_does_not_stand_during_idle_time():
    queue = _queue(100)
    assert not queue.is_too_long(0.6, 160)
    # From here on it is an ordinary queue.
    assert not queue.is_too_long(0.6, 160.9)
    assert queue.is_too_long(0.6, 161.1)


def test_request_without_header_does_not_mark_queue_empty(api, shedding, pages):
    assert api.get(pages[1]).status_code == 200
    assert api.get(pages[1], headers=_since(0.4)).status_code == 503


@pytest.mark.parametrize(("direction", "status"), [("incoming", 200), ("outgoing", 503)])
def test_incoming_lab_latency_does_not_count_as_queueing(
    api, shedding, caches, pages, direction, status
):
    caches.on(LAB_SHED=Switch.ON, LAB_LATENCY_MS=5000, LAB_LATENCY_DIRECTION=Direction(direction))
    assert api.get(pages[1], headers=_since(5)).status_code == status
    assert api.get(pages[1], headers=_since(6)).status_code == 503


@pytest.mark.parametrize("seconds", [None, 0, -60])
def test_recent_or_unmarked_request_is_answered(api, shedding, pages, seconds):
    headers = {} if seconds is None else _since(seconds)
    assert api.get(pages[1], headers=headers).status_code == 200


@pytest.mark.parametrize("value", ["", "soon", "t=1", "nan", "-inf"])
def test_request_with_invalid_start_time_is_answered(api, shedding, pages, value):
    assert api.get(pages[1], headers={"X-Request-Start": value}).status_code == 200


def test_shed_request_is_not_logged(api, shedding, pages, caplog):
    assert api.get(pages[1], headers=_since(1)).status_code == 503
    assert caplog.records == []


def test_fetch_for_nginx_is_rejected_if_its_page_would_come_too_late(api, caches, pages):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED)
    before = _shed_count()
    late = api.get(pages[1], headers={"X-Fetch-Start": f"{time.time() - 60:.3f} 55"})
    # Only Nginx sees this status, and returns a 503.
    assert (late.status_code, late.headers["Retry-After"]) == (529, "1")
    assert _shed_count() == before + 1
    assert api.get(pages[1], headers={"X-Fetch-Start": f"{time.time():.3f} 55"}).status_code == 200


def test_off_answers_every_request(api, caches, pages):
    caches.on(LAB_SHED=Switch.OFF)
    assert api.get(pages[1], headers=_since(60)).status_code == 200
