"""LAB_SHED: who waited too long is refused before anything is done for it."""

import time

import pytest
from config.kinds import RedisCache, Switch
from prometheus_client import REGISTRY

pytestmark = pytest.mark.django_db


def _since(seconds: float) -> dict[str, str]:
    """As Nginx' $msec says it."""
    return {"X-Request-Start": f"{time.time() - seconds:.3f}"}


def _shed() -> float:
    return REGISTRY.get_sample_value("lab_shed_requests_total") or 0


@pytest.fixture
def shedding(caches) -> None:
    caches.on(lab_shed=Switch.ON, lab_redis_cache=RedisCache.VERSIONED)


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
    caches.on(lab_shed=Switch.OFF)
    assert api.get(pages[1], headers=_since(60)).status_code == 200
