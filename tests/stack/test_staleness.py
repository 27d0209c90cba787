"""Age of pages during bookings under load, while Redis hangs, stops and recovers.

A read is stale if it starts after a booking's 201 and does not show that booking.
"""

import time

import httpx
import pytest

from load_lab.metrics.prometheus import Prometheus
from load_lab.metrics.queries import heartbeat, one_run
from load_lab.settings import update_settings
from load_lab.stack.native.supervision import wait_for
from tests.support.booking_load import Load, frozen_redis, stopped_redis

TTL_SECONDS = 1
QUIET_SECONDS = 5
protected = pytest.mark.settings(
    "LAB_NGINX_CACHE=protected", "LAB_REDIS_CACHE=versioned", "LAB_DETAIL=fast"
)
page_cache = pytest.mark.settings("LAB_REDIS_CACHE=page", "LAB_DETAIL=fast")


@pytest.mark.settings("LAB_REDIS_CACHE=versioned", "LAB_DETAIL=fast")
@pytest.mark.parametrize(
    "server", ["gunicorn-sync", pytest.param("gunicorn-gthread", marks=pytest.mark.full)]
)
def test_versioned_cache_never_serves_stale_pages(stack, server):
    stack.apply(update_settings(stack.settings(), [f"LAB_SERVER={server}"]))
    with Load(stack.settings().target_url) as load:
        _run_redis_outages(load, stack, then=lambda: _wait_for_a_hit(stack))
    assert load.records.stale == []
    assert set(load.records.statuses) == {200, 201}


@protected
@pytest.mark.parametrize("redis", ["versioned", pytest.param("off", marks=pytest.mark.full)])
def test_protected_cache_respects_its_age_limit(stack, redis):
    """The limit is TTL + 2 s + the duration of one response, regardless of Redis."""
    stack.apply(update_settings(stack.settings(), [f"LAB_REDIS_CACHE={redis}"]))
    with Load(stack.settings().target_url) as load:
        _run_redis_outages(load, stack)
    _check_age_limit(load)
    assert load.records.stale, "pages are cached for a second: some reads must be of that age"


@pytest.mark.full
@protected
def test_protected_cache_respects_its_age_limit_after_idle_time(stack):
    load = Load(stack.settings().target_url)
    load.read_once()
    for _ in range(3):
        # Without reads in between, the cached page is older than the booking.
        load.book_once()
        # Longer than the age limit.
        time.sleep(QUIET_SECONDS)
        load.read_once()
    assert load.bookings == 3
    _check_age_limit(load)


def _run_redis_outages(load, stack, then=lambda: None) -> None:
    """Continue the load before, during and after each outage; call `then` after each."""
    load.wait_for_progress()
    for outage in (frozen_redis, stopped_redis):
        with outage(stack):
            load.wait_for_progress()
        load.wait_for_progress()
        then()


def _check_age_limit(load) -> None:
    assert set(load.records.statuses) == {200, 201}
    assert max(load.records.stale, default=0) <= TTL_SECONDS + 2 + load.records.slowest


@page_cache
def test_page_cache_serves_stale_pages(stack):
    """Verify that the same load detects staleness where it exists."""
    with Load(stack.settings().target_url) as load:
        load.wait_for_progress(bookings=5)
    assert load.records.stale
    assert set(load.records.statuses) == {200, 201}


def _run_probe(lab, **environ):
    """Return the result of a run with the load generator's staleness probe."""
    flags = ("--scenario", "staleness", "--vus", "1", "--duration", "2s", "--json")
    result = lab("k6", "smoke", *flags, **environ)
    assert result.code == 0, result.err
    return result.json


@protected
def test_probe_measures_staleness_within_limit_of_protected_cache(lab, stack):
    result = _run_probe(lab)
    staleness = result["staleness"]
    assert staleness["unseen"] == 0
    assert 100 < staleness["max_ms"] <= (TTL_SECONDS + 2) * 1000 + result["p99_ms"] + 100
    assert _staleness_in_prometheus(stack, result["testid"]) == staleness["seen"]


def _staleness_in_prometheus(stack, testid):
    """Return the number of values in the run's histogram."""
    prometheus = Prometheus(stack.settings().prometheus_url)
    now = time.time()
    (beats,) = prometheus.samples(heartbeat(one_run(testid)), now - 60, now).values()
    histogram = f'k6_lab_staleness_seconds{{testid="{testid}"}} @ {max(beats)}'
    return prometheus.instant(f"histogram_count(sum({histogram}))")


@page_cache
def test_probe_counts_bookings_not_seen_in_time(lab, stack):
    staleness = _run_probe(lab, STALENESS_BOUND="1")["staleness"]
    assert staleness["seen"] == 0
    assert staleness["unseen"] >= 1


def _wait_for_a_hit(stack) -> None:
    before = _redis_hits(stack)
    wait_for(lambda: _redis_hits(stack) > before, seconds=10, what="A hit after the outage")


def _redis_hits(stack) -> float:
    url = f"http://127.0.0.1:{stack.settings().LAB_METRICS_PORT}/metrics"
    name = 'lab_cache_answers_total{layer="redis",outcome="hit"}'
    lines = [line for line in httpx.get(url).text.splitlines() if line.startswith(name)]
    return sum(float(line.split()[-1]) for line in lines)
