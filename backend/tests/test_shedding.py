"""LAB_SHED: who waited too long is refused before anything is done for it."""

import time

import pytest
from lab_settings.kinds import Direction, RedisCache, Switch
from ops import shedding as module
from ops.shedding import Queue
from prometheus_client import REGISTRY

pytestmark = pytest.mark.django_db


def _since(seconds: float) -> dict[str, str]:
    """As Nginx' $msec says it."""
    return {"X-Request-Start": f"{time.time() - seconds:.3f}"}


def _shed() -> float:
    return REGISTRY.get_sample_value("lab_shed_requests_total") or 0


def _queue(now: float) -> Queue:
    """Of a process that has served for long."""
    queue = Queue(now)
    queue._first_at = float("-inf")
    return queue


@pytest.fixture
def shedding(caches, monkeypatch) -> None:
    """On, before a queue that has stood for long."""
    queue = _queue(time.monotonic())
    queue._empty_at = float("-inf")
    monkeypatch.setattr(module, "_queue", queue)
    caches.on(LAB_SHED=Switch.ON, LAB_REDIS_CACHE=RedisCache.VERSIONED)


def test_who_waited_too_long_is_503_and_nothing_was_done(
    api, shedding, caches, pages, wish, django_assert_num_queries
):
    before, redis = _shed(), caches.counts("redis")
    labels = {"route": "hotel_detail", "method": "GET", "status": "503"}
    counted = REGISTRY.get_sample_value("lab_http_requests_total", labels) or 0
    with django_assert_num_queries(0):
        answers = [
            *(api.get(path, headers=_since(0.4)) for path in pages),
            api.post("/api/booking/", wish, format="json", headers=_since(5)),
        ]
    for answer in answers:
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert answer.json()["error"]["code"] == "overloaded"
    assert _shed() == before + 3
    assert redis() == {}
    assert REGISTRY.get_sample_value("lab_http_requests_total", labels) == counted + 1


def test_a_burst_is_waited_for_longer_than_a_queue_that_stands(api, shedding, pages, monkeypatch):
    # Spans that a busy machine does not reach by itself.
    monkeypatch.setattr(module, "BURST_WAIT_SECONDS", 100)
    monkeypatch.setattr(module, "STANDING_SECONDS", 100)

    def asked(seconds):
        return api.get(pages[1], headers=_since(seconds)).status_code

    assert asked(50) == 503
    # Nobody was before this one, so what comes now has come at once.
    assert asked(-1) == 200
    assert [asked(50), asked(150)] == [200, 503]


@pytest.mark.parametrize(
    ("since_empty", "wait", "too_long"),
    [(0.9, 0.69, False), (0.9, 0.71, True), (1.1, 0.29, False), (1.1, 0.31, True)],
)
def test_the_patience_goes_by_when_the_queue_was_empty(since_empty, wait, too_long):
    queue = _queue(99)
    assert not queue.is_too_long(0.04, 100)
    # These found a queue, and say nothing of when it was empty.
    assert not queue.is_too_long(0.06, 100.5)
    assert not queue.is_too_long(0.06, 100 + since_empty)
    assert queue.is_too_long(wait, 100 + since_empty) == too_long


def test_who_waited_for_the_server_to_start_is_served_for_as_long_as_a_burst():
    queue = Queue(98)
    assert not queue.is_too_long(5, 100)
    assert not queue.is_too_long(5, 100.69)
    assert queue.is_too_long(5, 100.71)
    assert queue.is_too_long(0.8, 101)


def test_where_nobody_came_for_long_no_queue_stood():
    queue = _queue(100)
    assert not queue.is_too_long(0.6, 160)
    # From then on this is a queue like any other.
    assert not queue.is_too_long(0.6, 160.9)
    assert queue.is_too_long(0.6, 161.1)


def test_who_says_nothing_does_not_make_the_queue_an_empty_one(api, shedding, pages):
    assert api.get(pages[1]).status_code == 200
    assert api.get(pages[1], headers=_since(0.4)).status_code == 503


@pytest.mark.parametrize(("direction", "status"), [("incoming", 200), ("outgoing", 503)])
def test_the_labs_own_delay_on_the_way_in_is_no_queue(
    api, shedding, caches, pages, direction, status
):
    caches.on(LAB_SHED=Switch.ON, LAB_LATENCY_MS=5000, LAB_LATENCY_DIRECTION=Direction(direction))
    assert api.get(pages[1], headers=_since(5)).status_code == status
    assert api.get(pages[1], headers=_since(6)).status_code == 503


@pytest.mark.parametrize("seconds", [None, 0, -60])
def test_who_came_just_now_or_says_nothing_is_answered(api, shedding, pages, seconds):
    headers = {} if seconds is None else _since(seconds)
    assert api.get(pages[1], headers=headers).status_code == 200


@pytest.mark.parametrize("value", ["", "soon", "t=1", "nan", "-inf"])
def test_what_is_no_time_is_answered(api, shedding, pages, value):
    assert api.get(pages[1], headers={"X-Request-Start": value}).status_code == 200


def test_a_refusal_writes_no_line_to_the_log(api, shedding, pages, caplog):
    assert api.get(pages[1], headers=_since(1)).status_code == 503
    assert caplog.records == []


def test_off_answers_everyone(api, caches, pages):
    caches.on(LAB_SHED=Switch.OFF)
    assert api.get(pages[1], headers=_since(60)).status_code == 200
