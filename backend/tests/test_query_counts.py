"""Number of SQL statements per route. Each one adds a round trip to every request."""

import pytest
from hotels.models import Booking
from lab_settings.kinds import Implementation, LocalCache, RedisCache

pytestmark = pytest.mark.django_db

NAIVE, FAST = Implementation.NAIVE, Implementation.FAST
# The test runs in a transaction, so each `atomic()` is a savepoint. Its SAVEPOINT and RELEASE are
# counted here; the BEGIN and COMMIT of a real request are not.
SAVEPOINT = 2


def test_list_queries_its_version_and_the_hotels(api, suite, django_assert_num_queries):
    with django_assert_num_queries(1 + 1):
        assert api.get("/api/hotel/").status_code == 200


@pytest.mark.parametrize(
    ("implementation", "tables"),
    # naive: one per table. fast: one for the hotel, one for everything below it.
    [(NAIVE, 4), (FAST, 2)],
)
@pytest.mark.parametrize("bookings", [1, 8])
def test_detail_query_count_does_not_depend_on_bookings(
    api, caches, suite, customers, bookings, implementation, tables, django_assert_num_queries
):
    caches.on(LAB_DETAIL=implementation)
    for day in range(bookings):
        booking = Booking.objects.create(
            suite=suite, check_in=f"2031-01-{day + 1:02}", check_out=f"2031-01-{day + 2:02}"
        )
        booking.customers.set(customers[:2])
    with django_assert_num_queries(1 + tables):
        assert api.get(f"/api/hotel/{suite.hotel_id}/").status_code == 200


@pytest.mark.parametrize(
    ("redis", "local", "queries"),
    [
        (RedisCache.VERSIONED, LocalCache.OFF, 1),
        (RedisCache.PAGE, LocalCache.OFF, 0),
        (RedisCache.OFF, LocalCache.LRU, 0),
        (RedisCache.VERSIONED, LocalCache.LRU, 0),
    ],
)
@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_cached_page_queries_at_most_its_version(
    api, caches, pages, redis, local, queries, coding, django_assert_num_queries
):
    caches.on(LAB_REDIS_CACHE=redis, LAB_LOCAL_CACHE=local)
    for path in pages:
        headers = {"Accept-Encoding": coding}
        tag = api.get(path, headers=headers).headers["ETag"]
        with django_assert_num_queries(queries):
            assert api.get(path, headers=headers).status_code == 200
        with django_assert_num_queries(queries):
            conditional = {**headers, "If-None-Match": tag}
            assert api.get(path, headers=conditional).status_code == 304


def test_304_without_cache_queries_only_its_version(api, caches, pages, django_assert_num_queries):
    for path in pages:
        tag = api.get(path).headers["ETag"]
        with django_assert_num_queries(1):
            assert api.get(path, headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize(
    ("implementation", "key", "queries"),
    [
        # A transaction and eight statements.
        (NAIVE, {}, SAVEPOINT + 8),
        (NAIVE, {"Idempotency-Key": "k"}, 2 * SAVEPOINT + 8 + 2),
        (FAST, {}, 1),
        # One statement in a request; the transaction of the test adds a savepoint.
        (FAST, {"Idempotency-Key": "k"}, SAVEPOINT + 1),
    ],
)
def test_booking_query_count(
    api, caches, booking_data, implementation, key, queries, django_assert_num_queries
):
    caches.on(LAB_BOOKING=implementation)
    with django_assert_num_queries(queries):
        assert (
            api.post("/api/booking/", booking_data, format="json", headers=key).status_code == 201
        )


@pytest.mark.parametrize(
    ("key", "queries"),
    # The single statement, which fails. With a key also: lock and lookup, booking, answer.
    [({}, 1), ({"Idempotency-Key": "k"}, SAVEPOINT + 1 + SAVEPOINT + 3)],
)
def test_conflict_query_count(api, caches, booking_data, key, queries, django_assert_num_queries):
    caches.on(LAB_BOOKING=FAST)
    api.post("/api/booking/", booking_data, format="json")
    with django_assert_num_queries(queries):
        assert (
            api.post("/api/booking/", booking_data, format="json", headers=key).status_code == 409
        )


@pytest.mark.parametrize(
    ("implementation", "queries"), [(NAIVE, SAVEPOINT + 1), (FAST, SAVEPOINT + 1 + SAVEPOINT + 1)]
)
def test_replayed_booking_takes_one_lookup(
    api, caches, booking_data, implementation, queries, django_assert_num_queries
):
    caches.on(LAB_BOOKING=implementation)
    key = {"Idempotency-Key": "k"}
    api.post("/api/booking/", booking_data, format="json", headers=key)
    with django_assert_num_queries(queries):
        answer = api.post("/api/booking/", booking_data, format="json", headers=key)
    assert answer.headers["Idempotency-Replayed"] == "true"
