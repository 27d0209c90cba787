"""Stock mode: with naive settings Django runs unmodified, as the baseline for other values."""

import pytest
from lab_settings.declaration import Declaration
from lab_settings.kinds import Implementation, LocalCache, NginxCache, RedisCache

FAST = Implementation.FAST


@pytest.mark.parametrize(
    ("changes", "is_stock"),
    [
        ({}, True),
        ({"LAB_REDIS_CACHE": RedisCache.PAGE, "LAB_NGINX_CACHE": NginxCache.BASIC}, True),
        ({"LAB_LOCAL_CACHE": LocalCache.LRU}, True),
        ({"LAB_DETAIL": FAST}, False),
        ({"LAB_BOOKING": FAST}, False),
        ({"LAB_DB_POOL": "4"}, False),
        ({"LAB_REDIS_CACHE": RedisCache.VERSIONED}, False),
        ({"LAB_NGINX_CACHE": NginxCache.PROTECTED}, False),
    ],
)
def test_only_naive_settings_are_stock(changes, is_stock):
    assert Declaration(**changes).is_stock is is_stock


@pytest.fixture
def stock(caches):
    caches.on(LAB_BOOKING=Implementation.NAIVE)
    return caches


@pytest.mark.django_db
@pytest.mark.parametrize("local", list(LocalCache))
@pytest.mark.parametrize("redis", [RedisCache.OFF, RedisCache.PAGE])
def test_page_has_no_etag_and_ignores_if_none_match(api, stock, pages, redis, local):
    stock.on(LAB_REDIS_CACHE=redis, LAB_LOCAL_CACHE=local)
    for path in pages:
        for answer in (api.get(path), api.get(path, headers={"If-None-Match": "*"})):
            assert (answer.status_code, "ETag" in answer.headers) == (200, False)


@pytest.mark.django_db
@pytest.mark.parametrize("redis", [RedisCache.OFF, RedisCache.PAGE])
def test_page_queries_no_version(api, stock, pages, redis, django_assert_num_queries):
    stock.on(LAB_REDIS_CACHE=redis)
    # List: hotels. Detail: hotel, suites, bookings; without bookings no query for customers.
    for path, queries in zip(pages, [1, 3], strict=True):
        with django_assert_num_queries(queries):
            assert api.get(path).status_code == 200


@pytest.mark.django_db
def test_unknown_hotel_is_404(api, stock):
    answer = api.get("/api/hotel/00000000-0000-4000-8000-000000000000/")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
