"""Redis rejects connections, hangs and recovers: responses stay correct and almost as fast."""

import logging
import os
import signal
import time

import pytest
from django.test import override_settings
from hotels.caching import circuit_breaker
from lab_settings.kinds import RedisCache
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from load_lab.stack.native.supervision import wait_for

REQUESTS = 10


@pytest.fixture
def redis_options() -> str:
    """Return nothing: an outage is noticed by the timeouts that are in use."""
    return ""


@pytest.fixture
def frozen(stack):
    """Stop Redis with SIGSTOP: it accepts connections and sends no replies."""
    pid = stack._supervision.pid("redis")
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGCONT)


@pytest.fixture
def attempts(monkeypatch) -> list[str]:
    """Return the commands that were actually sent to Redis."""
    commands, real = [], Redis.execute_command

    def execute_command(self, *args, **options):
        commands.append(args[0])
        return real(self, *args, **options)

    monkeypatch.setattr(Redis, "execute_command", execute_command)
    return commands


@pytest.fixture(params=[RedisCache.PAGE, RedisCache.VERSIONED])
def layer(request, caches) -> RedisCache:
    caches.on(LAB_REDIS_CACHE=request.param)
    return request.param


@pytest.mark.django_db
def test_hanging_redis_is_tried_at_most_once_per_second(
    api, caches, layer, pages, booking_data, frozen, attempts, caplog
):
    count, start = caches.counts("redis"), time.monotonic()
    for n in range(REQUESTS):
        booking = api.post("/api/booking/", {**booking_data, **_night(n)}, format="json").json()
        assert booking["id"] in api.get(pages[1]).content.decode()
    assert count() == {"unavailable": REQUESTS}
    # One per second of the test, not one per command; also on a slow machine.
    assert len(attempts) <= min(time.monotonic() - start + 1, REQUESTS - 1)
    records = [r for r in caplog.records if r.name == circuit_breaker.__name__]
    assert [r.levelno for r in records] == [logging.WARNING]


@pytest.mark.django_db
def test_pages_are_served_while_redis_rejects_connections(
    api, caches, layer, pages, settings, caplog
):
    configuration = {"default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}}
    with override_settings(CACHES=configuration):
        count = caches.counts("redis")
        for _ in range(REQUESTS):
            assert api.get(pages[1]).status_code == 200
        assert count() == {"unavailable": REQUESTS}
    assert len([r for r in caplog.records if r.name == circuit_breaker.__name__]) == 1


@pytest.mark.django_db
def test_redis_is_used_again_after_a_freeze(api, caches, layer, pages, stack):
    api.get(pages[1])
    os.kill(stack._supervision.pid("redis"), signal.SIGSTOP)
    try:
        assert _outcome(api, caches, pages) == {"unavailable": 1}
    finally:
        os.kill(stack._supervision.pid("redis"), signal.SIGCONT)
    wait_for(
        lambda: _outcome(api, caches, pages) == {"hit": 1}, seconds=5, what="A hit after the thaw"
    )


@pytest.mark.django_db
def test_redis_is_used_again_after_a_restart(api, caches, layer, pages, stack):
    api.get(pages[1])
    stack._supervision._call("stopProcess", "redis")
    try:
        assert _outcome(api, caches, pages) == {"unavailable": 1}
    finally:
        stack._supervision.start_service("redis")
    wait_for(
        lambda: _outcome(api, caches, pages) == {"hit": 1}, seconds=10, what="A hit after the start"
    )


@pytest.mark.django_db
def test_pages_are_served_while_redis_is_full(api, caches, layer, pages, monkeypatch):
    from redis.exceptions import ResponseError

    real = Redis.execute_command

    def full(self, *args, **options):
        if args[0] == "SET":
            raise ResponseError("OOM command not allowed when used memory > 'maxmemory'.")
        return real(self, *args, **options)

    monkeypatch.setattr(Redis, "execute_command", full)
    assert [api.get(pages[1]).status_code for _ in range(3)] == [200] * 3


def test_open_breaker_allows_one_attempt_after_each_pause(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(circuit_breaker.time, "monotonic", lambda: now[0])
    breaker = circuit_breaker.Breaker(pause=1)
    breaker.enter()
    breaker.record_failure(ValueError("gone"))
    for _ in range(3):
        with pytest.raises(circuit_breaker.BreakerOpenError):
            breaker.enter()
    now[0] += 1
    breaker.enter()
    with pytest.raises(circuit_breaker.BreakerOpenError):
        breaker.enter()
    breaker.record_success()
    breaker.enter()
    breaker.enter()


def test_outage_is_logged_at_its_start_and_end(caplog):
    breaker = circuit_breaker.Breaker(pause=0)
    for _ in range(2):
        for _ in range(3):
            breaker.record_failure(ValueError("gone"))
        for _ in range(3):
            breaker.record_success()
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [circuit_breaker.UNAVAILABLE % "gone", circuit_breaker.RECOVERED] * 2


def test_connection_uses_hiredis_and_short_timeouts_without_retries(caches):
    connection = caches.redis.connection_pool.make_connection()
    assert type(connection._parser).__name__ == "_HiredisParser"
    assert connection.retry.get_retries() == 0
    assert 0 < connection.socket_timeout < 0.1
    assert 0 < connection.socket_connect_timeout < 0.1
    assert issubclass(circuit_breaker.BreakerOpenError, RedisConnectionError)


def _night(n: int) -> dict[str, str]:
    return {"check_in": f"2031-07-{n + 1:02}", "check_out": f"2031-07-{n + 2:02}"}


def _outcome(api, caches, pages) -> dict[str, int]:
    count = caches.counts("redis")
    assert api.get(pages[1]).status_code == 200
    return count()
