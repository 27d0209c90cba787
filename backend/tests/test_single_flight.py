"""One request builds, the others wait: threads, processes, slow, failed and dead builders."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from config.settings import BASE_DIR
from django.core.cache import caches as django_caches
from hotels.caching import single_flight
from hotels.caching.single_flight import HIT, MISS, StillBuildingError, get_or_build

SETTINGS_MODULE = "config.settings"
CLIENTS = 8
BODY = b"body"

# Each process waits for a key in Redis, builds with four threads and counts its builds in Redis.
PROCESS = """
import sys, time, django
from concurrent.futures import ThreadPoolExecutor
django.setup()
from django_redis import get_redis_connection
from hotels.caching.single_flight import get_or_build
name, redis = sys.argv[1], get_redis_connection()

def make():
    redis.incr(name + ":builds")
    time.sleep(0.3)
    return b"body"

redis.incr(name + ":ready")
while not redis.exists(name + ":go"):
    time.sleep(0.005)
with ThreadPoolExecutor(4) as pool:
    assert [f.result()[0] for f in [pool.submit(get_or_build, name, make) for _ in range(4)]] == [
        b"body"
    ] * 4
"""


class Builder:
    """A `build` that is slow, as in production, and counts its calls."""

    def __init__(self, seconds: float = 0.2) -> None:
        self.seconds = seconds
        self.builds = 0
        self.started = threading.Event()

    def __call__(self) -> bytes:
        self.builds += 1
        self.started.set()
        time.sleep(self.seconds)
        return BODY


def _dead_builder(caches, name: str) -> None:
    """Take the lock without ever renewing or releasing it."""
    key = django_caches["default"].make_key(name)
    assert caches.redis.lock(f"{key}:lock", timeout=single_flight.LOCK_SECONDS).acquire()


def test_one_of_many_threads_builds(caches):
    build = Builder()
    with ThreadPoolExecutor(CLIENTS) as pool:
        results = list(pool.map(lambda _: get_or_build("x", build), range(CLIENTS)))
    assert {body for body, _ in results} == {BODY}
    assert sorted(outcome for _, outcome in results) == [HIT] * (CLIENTS - 1) + [MISS]
    assert build.builds == 1


def test_one_of_many_processes_builds(caches, redis_options):
    name = f"test-{uuid4().hex}"
    environ = {
        **os.environ,
        "PYTHONPATH": str(BASE_DIR),
        "DJANGO_SETTINGS_MODULE": SETTINGS_MODULE,
        "BACKEND_REDIS_URL": os.environ["BACKEND_REDIS_URL"] + redis_options,
    }
    processes = [
        subprocess.Popen([sys.executable, "-c", PROCESS, name], env=environ) for _ in range(3)
    ]
    deadline = time.monotonic() + 30
    while int(caches.redis.get(f"{name}:ready") or 0) < len(processes):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    caches.redis.set(f"{name}:go", 1)
    assert [process.wait(30) for process in processes] == [0] * len(processes)
    assert caches.redis.get(f"{name}:builds") == b"1"


def test_late_lock_finds_the_cached_body(caches, monkeypatch):
    """The builder may finish between our lookup and our lock."""
    build, lookups = Builder(), []
    real = single_flight._get

    def late(redis, key):
        lookups.append(key)
        if len(lookups) == 1:
            redis.set(key, BODY)
            return None
        return real(redis, key)

    monkeypatch.setattr(single_flight, "_get", late)
    assert get_or_build("x", build) == (BODY, HIT)
    assert build.builds == 0
    assert caches.redis.keys(f"{caches.prefix}*lock") == []


def test_dead_builder_delays_others_until_its_lock_expires(caches, monkeypatch):
    monkeypatch.setattr(single_flight, "LOCK_SECONDS", 0.3)
    _dead_builder(caches, "x")
    build = Builder(0)
    start = time.monotonic()
    assert get_or_build("x", build) == (BODY, MISS)
    assert time.monotonic() - start < single_flight.WAIT_SECONDS / 2


def test_slow_builder_renews_its_lock(caches, monkeypatch):
    monkeypatch.setattr(single_flight, "LOCK_SECONDS", 0.6)
    monkeypatch.setattr(single_flight, "RENEWAL_SECONDS", 0.1)
    build = Builder(1.8)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: get_or_build("x", build), range(2)))
    assert sorted(outcome for _, outcome in results) == [HIT, MISS]
    assert build.builds == 1


def test_waiting_request_is_rejected_after_timeout_and_builds_nothing(caches, monkeypatch):
    monkeypatch.setattr(single_flight, "WAIT_SECONDS", 0.2)
    _dead_builder(caches, "x")
    build = Builder(0)
    with pytest.raises(StillBuildingError):
        get_or_build("x", build)
    assert build.builds == 0
    # It did not wait for the lock to expire.
    assert len(caches.redis.keys(f"{caches.prefix}*lock")) == 1


def test_failed_build_releases_the_lock(caches):
    def fail():
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        get_or_build("x", fail)
    assert caches.redis.keys(f"{caches.prefix}*") == []
    assert get_or_build("x", Builder(0)) == (BODY, MISS)


def test_builder_does_not_release_the_lock_of_another(caches):
    """The builder was suspended until its lock expired, and another builder took it."""
    key = f"{django_caches['default'].make_key('x')}:lock"

    def build():
        caches.redis.set(key, "theirs")
        return BODY

    assert get_or_build("x", build) == (BODY, MISS)
    assert caches.redis.get(key) == b"theirs"


def test_cached_body_expires(caches):
    get_or_build("x", Builder(0))
    (key,) = caches.redis.keys(f"{caches.prefix}*")
    assert 0 < caches.redis.ttl(key) <= single_flight.LIFETIME_SECONDS
