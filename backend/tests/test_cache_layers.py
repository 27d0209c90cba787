"""What one layer alone does: compressed variants, this process' memory, many readers at once."""

import gc
import gzip
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from hotels.caching import local, versioned
from hotels.caching.ask import Ask
from hotels.models import Hotel
from lab_settings.kinds import Implementation, LocalCache, RedisCache
from redis.lock import Lock
from rest_framework.test import APIClient

GZIP = {"Accept-Encoding": "gzip, br"}


@pytest.fixture
def compressions(monkeypatch) -> list[int]:
    """One entry for each body that was compressed."""
    made, real = [], versioned.compressed

    def compressed(body):
        made.append(len(body))
        return real(body)

    monkeypatch.setattr(versioned, "compressed", compressed)
    return made


@pytest.mark.django_db
def test_the_compressed_variant_is_made_once_when_it_is_first_asked_for(
    api, caches, pages, compressions
):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED)
    built = pages.builds("hotel_detail")
    plain = api.get(pages[1])
    assert compressions == []
    answers = [api.get(pages[1], headers=GZIP) for _ in range(3)]
    assert {gzip.decompress(answer.content) for answer in answers} == {plain.content}
    assert {answer.headers["Content-Encoding"] for answer in answers} == {"gzip"}
    assert len({answer.content for answer in answers}) == 1
    assert len(compressions) == 1
    assert built() == 1


@pytest.mark.django_db
def test_the_compressed_variant_has_its_own_etag(api, caches, pages):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED)
    for path in pages:
        plain, packed = api.get(path), api.get(path, headers=GZIP)
        assert packed.headers["ETag"] == f'{plain.headers["ETag"][:-1]}-gzip"'
        known = {"If-None-Match": packed.headers["ETag"]}
        answer = api.get(path, headers={**GZIP, **known})
        assert answer.status_code == 304
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert api.get(path, headers=known).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("deflate, gzip ; q=1.0", True),
        ("", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("notgzip", False),
    ],
)
def test_gzip_is_for_who_takes_it(api, caches, pages, accepted, packed):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED)
    answer = api.get(pages[0], headers={"Accept-Encoding": accepted})
    assert (answer.headers.get("Content-Encoding") == "gzip") == packed


@pytest.mark.django_db
def test_only_versioned_compresses(api, caches, pages):
    for redis in (RedisCache.OFF, RedisCache.PAGE):
        caches.on(LAB_REDIS_CACHE=redis, LAB_LOCAL_CACHE=LocalCache.LRU)
        assert "Content-Encoding" not in api.get(pages[0], headers=GZIP).headers
        local.forget()


@pytest.mark.django_db
def test_lru_keeps_both_variants_of_versioned(api, caches, pages):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED, LAB_LOCAL_CACHE=LocalCache.LRU)
    bodies = [api.get(pages[1], headers=headers).content for headers in ({}, GZIP, {}, GZIP)]
    assert bodies[0] == bodies[2] == gzip.decompress(bodies[1])
    assert bodies[1] == bodies[3]


@pytest.mark.django_db
def test_a_hit_of_lru_asks_nobody(api, caches, pages, django_assert_num_queries):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED, LAB_LOCAL_CACHE=LocalCache.LRU)
    api.get(pages[1])
    redis = caches.counts("redis")
    with django_assert_num_queries(0):
        assert api.get(pages[1]).status_code == 200
    assert redis() == {}


@pytest.mark.django_db
def test_lru_forgets_after_its_time_at_the_latest(api, caches, pages, wish, monkeypatch):
    caches.on(LAB_LOCAL_CACHE=LocalCache.LRU)
    now = [7 * local.LIFETIME_SECONDS]
    monkeypatch.setattr(local.time, "monotonic", lambda: now[0])
    old = api.get(pages[1]).content
    api.post("/api/booking/", wish, format="json")
    now[0] += local.LIFETIME_SECONDS - 1
    assert api.get(pages[1]).content == old
    now[0] += 1
    assert api.get(pages[1]).content != old


@pytest.mark.django_db
def test_lru_is_bounded_and_lets_requests_go(api, caches, pages):
    caches.on(LAB_LOCAL_CACHE=LocalCache.LRU)
    api.get(pages[1])
    assert local._kept.cache_info().maxsize == local.PAGES
    (kept,) = [o for o in gc.get_objects() if type(o) is local.Wanted]
    assert kept._make is local._used


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("implementation", list(Implementation))
def test_of_many_readers_of_a_cold_page_one_builds(caches, pages, implementation, monkeypatch):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED, LAB_DETAIL=implementation)
    assert _builds_of_many_readers(pages, monkeypatch) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "position", [{"LAB_REDIS_CACHE": RedisCache.PAGE}, {"LAB_LOCAL_CACHE": LocalCache.LRU}]
)
def test_page_and_lru_stampede(caches, pages, position, monkeypatch):
    """The fault that `versioned` mends."""
    caches.on(**position)
    assert _builds_of_many_readers(pages, monkeypatch) > 1


def _builds_of_many_readers(pages, monkeypatch) -> int:
    # All have looked before the first has built.
    together, real = threading.Barrier(8), Ask.version

    def version(ask):
        found = real(ask)
        together.wait(10)
        return found

    def get(path):
        try:
            return APIClient().get(path).content
        finally:
            connections.close_all()

    monkeypatch.setattr(Ask, "version", version)
    built = pages.builds("hotel_detail")
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(get, [pages[1]] * 8))) == 1
    return built()


@pytest.mark.django_db
def test_what_the_view_refuses_is_not_kept(api, caches, pages, monkeypatch):
    """The version was read, and then the hotel was deleted."""
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED)
    hotel = pages[1].split("/")[3]
    real = Lock.acquire

    def acquire(lock):
        Hotel.objects.filter(pk=hotel).delete()
        return real(lock)

    monkeypatch.setattr(Lock, "acquire", acquire)
    assert api.get(pages[1]).status_code == 404
    assert caches.redis.keys(f"{caches.prefix}*") == []
