"""Responses with every cache setting: bodies, ETags, 304s, headers, queries."""

from datetime import date
from uuid import uuid4

import pytest
from django.conf import settings as django_settings
from django.urls import resolve
from hotels.caching.page_request import PageRequest
from hotels.models import Booking, Hotel
from lab_settings.kinds import Implementation, LocalCache, RedisCache

pytestmark = pytest.mark.django_db

FRESH_CACHES = [RedisCache.OFF, RedisCache.VERSIONED]
TOKEN = {"X-Lab-Token": django_settings.LAB_TOKEN}


def test_all_cache_settings_return_the_same_bytes(
    api, cache_variant, pages, detail_by, suite, customers
):
    _book(suite, customers)
    for path in pages:
        uncached = api.get(path, headers=TOKEN).content
        assert [api.get(path).content for _ in range(3)] == [uncached] * 3


def test_all_cache_settings_send_strong_etag_and_304(api, cache_variant, pages):
    for path in pages:
        tag = api.get(path).headers["ETag"]
        assert tag.startswith('"v1-')
        for value in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            answer = api.get(path, headers={"If-None-Match": value})
            assert (answer.status_code, answer.content) == (304, b"")
            assert answer.headers["ETag"] == tag
        assert api.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_304_is_not_cached_for_unconditional_requests(api, cache_variant, pages):
    for path in pages:
        tag = api.get(path, headers=TOKEN).headers["ETag"]
        assert api.get(path, headers={"If-None-Match": tag}).status_code == 304
        answer = api.get(path)
        assert answer.status_code == 200
        assert len(answer.content) > 100


def test_head_sends_the_headers_of_get_without_body(api, cache_variant, pages):
    for path in pages:
        head, get = api.head(path), api.get(path)
        again = api.head(path)
        assert head.content == again.content == b""
        for name in ("ETag", "Content-Type", "Content-Length"):
            assert head.headers[name] == again.headers[name] == get.headers[name]


def test_head_passes_no_body_to_the_server(rf, cache_variant, pages):
    """Gunicorn drops such a body and logs it; the test client drops it silently."""
    for path in pages:
        view, _, ids = resolve(path)
        assert view(rf.head(path), **ids).content == b""


def test_unknown_and_invalid_requests_fail_with_all_cache_settings(
    api, cache_variant, pages, hotel
):
    for path in pages:
        api.get(path)
        assert api.get(f"{path}?format=xml").status_code == 404
        assert api.get(path, headers={"Accept": "text/html"}).status_code == 406
        assert api.post(path).status_code == 405
        assert "ETag" not in api.options(path).headers
    for method in (api.get, api.head):
        assert method(f"/api/hotel/{uuid4()}/").status_code == 404
        answer = method(f"/api/hotel/{uuid4()}/", headers={"If-None-Match": "*"})
        assert answer.status_code == 404


def test_deleted_hotel_is_404(api, caches, hotel):
    caches.on(LAB_REDIS_CACHE=RedisCache.VERSIONED)
    path = f"/api/hotel/{hotel.pk}/"
    assert api.get(path).status_code == 200
    hotel.delete()
    assert api.get(path).status_code == 404


@pytest.mark.parametrize("redis", FRESH_CACHES)
def test_response_shows_the_latest_booking(api, caches, redis, suite, customers, booking_data):
    caches.on(LAB_REDIS_CACHE=redis)
    path = f"/api/hotel/{suite.hotel_id}/"
    before = api.get(path)
    booking = api.post("/api/booking/", booking_data, format="json").json()
    after = api.get(path, headers={"If-None-Match": before.headers["ETag"]})
    assert after.status_code == 200
    assert booking["id"] in after.content.decode()
    assert after.headers["ETag"] != before.headers["ETag"]


@pytest.mark.parametrize("redis", FRESH_CACHES)
def test_booking_made_during_a_build_shows_in_next_response(
    api, caches, pages, redis, booking_data, monkeypatch
):
    """The version is read before the page. Read after it, an old page would get the new version."""
    caches.on(LAB_REDIS_CACHE=redis)
    real, ids = PageRequest.build, []

    def build(page_request):
        response = real(page_request)
        if not ids:
            ids.append(api.post("/api/booking/", booking_data, format="json").json()["id"])
        return response

    monkeypatch.setattr(PageRequest, "build", build)
    answer = api.get(pages[1])
    conditional = {"If-None-Match": answer.headers["ETag"]}
    for headers in ({}, conditional):
        assert ids[0] in api.get(pages[1], headers=headers).content.decode()


@pytest.mark.parametrize(
    "cache_variant", [{"LAB_REDIS_CACHE": RedisCache.PAGE}, {"LAB_LOCAL_CACHE": LocalCache.LRU}]
)
def test_page_and_lru_serve_stale_pages(api, caches, cache_variant, suite, booking_data):
    """The fault that `versioned` fixes. Only tests that can detect it can verify `versioned`."""
    caches.on(**cache_variant)
    path = f"/api/hotel/{suite.hotel_id}/"
    before = api.get(path)
    booking = api.post("/api/booking/", booking_data, format="json").json()
    after = api.get(path)
    assert booking["id"] not in after.content.decode()
    assert after.headers["ETag"] == before.headers["ETag"]
    assert booking["id"] in api.get(path, headers=TOKEN).content.decode()


def test_list_etag_changes_with_added_and_deleted_hotels(api, hotel):
    tags = [api.get("/api/hotel/").headers["ETag"]]
    other = Hotel.objects.create(name="B", address="b", city="b", stars=1, description="")
    tags.append(api.get("/api/hotel/").headers["ETag"])
    other.delete()
    Hotel.objects.create(name="C", address="c", city="c", stars=1, description="")
    tags.append(api.get("/api/hotel/").headers["ETag"])
    assert len(set(tags)) == 3


def test_list_version_may_exceed_bigint(api, hotel):
    Hotel.objects.create(
        name="B", address="b", city="b", stars=1, description="", version=2**63 - 1
    )
    assert api.get("/api/hotel/").headers["ETag"] == f'"v1-2-{2**63 - 1 + hotel.version}"'


@pytest.mark.parametrize("layer", ["redis", "local"])
def test_hits_and_misses_are_counted_except_lab_requests(api, caches, pages, layer):
    caches.on(
        LAB_REDIS_CACHE=RedisCache.VERSIONED if layer == "redis" else RedisCache.OFF,
        LAB_LOCAL_CACHE=LocalCache.LRU if layer == "local" else LocalCache.OFF,
    )
    for path in pages:
        count = caches.counts(layer)
        assert api.get(path, headers=TOKEN).status_code == 200
        assert count() == {}
        api.get(path)
        assert count() == {"miss": 1}
        api.get(path)
        assert count() == {"miss": 1, "hit": 1}


def test_page_cache_hits_and_misses_are_counted(api, caches, pages):
    caches.on(LAB_REDIS_CACHE=RedisCache.PAGE)
    for path in pages:
        count = caches.counts("redis")
        for _ in range(3):
            api.get(path)
        assert count() == {"miss": 1, "hit": 2}


def test_builds_are_counted_by_route_with_all_cache_settings(api, cache_variant, pages):
    routes = ("hotel_list", "hotel_detail")
    for path, route in zip(pages, routes, strict=True):
        builds = pages.builds(route)
        api.get(path)
        assert builds() == 1
        api.get(path, headers={"If-None-Match": "*"})
        api.get(f"/api/hotel/{uuid4()}/")
        assert builds() == 1


def test_unavailable_database_is_503_with_all_cache_settings(
    api, cache_variant, pages, monkeypatch
):
    from config.postgres import prepared
    from django.db import OperationalError
    from hotels import selectors

    def fail(*_):
        raise OperationalError("connection refused")

    monkeypatch.setattr(prepared, "row", fail)
    for name in ("hotel_list", "hotel_detail_naive"):
        monkeypatch.setattr(selectors, name, fail)
    for path in pages:
        answer = api.get(path)
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert answer.json()["error"]["code"] == "unavailable"


@pytest.mark.parametrize("implementation", list(Implementation))
def test_only_naive_caches_the_data_with_the_bytes(api, caches, pages, implementation):
    """In the article, cache_page also stored the pickle of DRF's Response."""
    caches.on(LAB_REDIS_CACHE=RedisCache.PAGE, LAB_DETAIL=implementation)
    api.get(pages[1])
    (value,) = [caches.redis.get(key) for key in caches.redis.keys(f"{caches.prefix}*cache_page*")]
    assert (b"rest_framework.response" in value) == (implementation is Implementation.NAIVE)


def _book(suite, customers):
    booking = Booking.objects.create(
        suite=suite, check_in=date(2031, 1, 1), check_out=date(2031, 1, 3)
    )
    booking.customers.set(customers[:2])
