"""Each cache layer alone: compressed variants, process-local memory, concurrent readers."""

import gc
import gzip
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from hotels.caching import local, versioned
from hotels.caching.page_request import PageRequest
from hotels.models import Hotel
from lab_settings.kinds import Implementation, LocalCache, RedisCache
from redis.lock import Lock
from rest_framework.test import APIClient

GZIP = {"Accept-Encoding": "gzip, br"}


@pytest.fixture
def compressions(monkeypatch) -> list[int]:
    """Return a list with one entry per compressed body."""
    sizes, real = [], versioned.compress

    def compress(body):
        sizes.append(len(body))
        return real(body)

    monkeypatch.setattr(versioned, "compress", compress)
    return sizes


@pytest.mark.django_db
def test_compressed_variant_is_made_once_on_first_request(api, caches, pages, compressions):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED)
    builds = pages.builds("hotel_detail")
    plain = api.get(pages[1])
    assert compressions == []
    answers = [api.get(pages[1], headers=GZIP) for _ in range(3)]
    assert {gzip.decompress(answer.content) for answer in answers} == {plain.content}
    assert {answer.headers["Content-Encoding"] for answer in answers} == {"gzip"}
    assert len({answer.content for answer in answers}) == 1
    assert len(compressions) == 1
    assert builds() == 1


@pytest.mark.django_db
def test_compressed_variant_has_a_separate_etag(api, caches, pages):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED)
    for path in pages:
        plain, compressed = api.get(path), api.get(path, headers=GZIP)
        assert compressed.headers["ETag"] == f'{plain.headers["ETag"][:-1]}-gzip"'
        known = {"If-None-Match": compressed.headers["ETag"]}
        answer = api.get(path, headers={**GZIP, **known})
        assert answer.status_code == 304
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert api.get(path, headers=known).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("accepted", "compressed"),
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
def test_gzip_is_sent_only_to_clients_accepting_it(api, caches, pages, accepted, compressed):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED)
    answer = api.get(pages[0], headers={"Accept-Encoding": accepted})
    assert (answer.headers.get("Content-Encoding") == "gzip") == compressed


@pytest.mark.django_db
def test_only_versioned_compresses(api, caches, pages):
    for redis in (RedisCache.OFF, RedisCache.PAGE):
        caches.on(LAB_REDIS_CACHE=redis, LAB_LOCAL_CACHE=LocalCache.LRU)
        assert "Content-Encoding" not in api.get(pages[0], headers=GZIP).headers
        local.clear()


@pytest.mark.django_db
def test_lru_caches_both_variants_of_versioned(api, caches, pages):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED, LAB_LOCAL_CACHE=LocalCache.LRU)
    bodies = [api.get(pages[1], headers=headers).content for headers in ({}, GZIP, {}, GZIP)]
    assert bodies[0] == bodies[2] == gzip.decompress(bodies[1])
    assert bodies[1] == bodies[3]


@pytest.mark.django_db
def test_lru_hit_uses_neither_redis_nor_postgres(api, caches, pages, django_assert_num_queries):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED, LAB_LOCAL_CACHE=LocalCache.LRU)
    api.get(pages[1])
    redis = caches.counts("redis")
    with django_assert_num_queries(0):
        assert api.get(pages[1]).status_code == 200
    assert redis() == {}


@pytest.mark.django_db
def test_lru_entry_expires_after_its_lifetime(api, caches, pages, booking_data, monkeypatch):
    caches.on(LAB_LOCAL_CACHE=LocalCache.LRU)
    now = [7 * local.LIFETIME_SECONDS]
    monkeypatch.setattr(local.time, "monotonic", lambda: now[0])
    old = api.get(pages[1]).content
    api.post("/api/booking/", booking_data, format="json")
    now[0] += local.LIFETIME_SECONDS - 1
    assert api.get(pages[1]).content == old
    now[0] += 1
    assert api.get(pages[1]).content != old


@pytest.mark.django_db
def test_lru_has_a_size_limit_and_releases_requests(api, caches, pages):
    caches.on(LAB_LOCAL_CACHE=LocalCache.LRU)
    api.get(pages[1])
    assert local._cached_page.cache_info().maxsize == local.PAGES
    (key,) = [o for o in gc.get_objects() if type(o) is local.PageKey]
    assert key._render is local._fail_second_render


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("implementation", list(Implementation))
def test_one_of_many_readers_builds_a_cold_page(caches, pages, implementation, monkeypatch):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED, LAB_DETAIL=implementation)
    assert _builds_of_many_readers(pages, monkeypatch) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "cache_variant", [{"LAB_REDIS_CACHE": RedisCache.PAGE}, {"LAB_LOCAL_CACHE": LocalCache.LRU}]
)
def test_page_and_lru_allow_cache_stampede(caches, pages, cache_variant, monkeypatch):
    """The fault that `versioned` fixes."""
    caches.on(**cache_variant)
    assert _builds_of_many_readers(pages, monkeypatch) > 1


def _builds_of_many_readers(pages, monkeypatch) -> int:
    # All readers look up the page before the first has built it.
    barrier, real = threading.Barrier(8), PageRequest.version

    def version(page_request):
        token = real(page_request)
        barrier.wait(10)
        return token

    def get(path):
        try:
            return APIClient().get(path).content
        finally:
            connections.close_all()

    monkeypatch.setattr(PageRequest, "version", version)
    builds = pages.builds("hotel_detail")
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(get, [pages[1]] * 8))) == 1
    return builds()


@pytest.mark.django_db
def test_error_response_is_not_cached(api, caches, pages, monkeypatch):
    """The hotel is deleted after its version was read."""
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED)
    hotel = pages[1].split("/")[3]
    real = Lock.acquire

    def acquire(lock):
        Hotel.objects.filter(pk=hotel).delete()
        return real(lock)

    monkeypatch.setattr(Lock, "acquire", acquire)
    assert api.get(pages[1]).status_code == 404
    assert caches.redis.keys(f"{caches.prefix}*") == []
