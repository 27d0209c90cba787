"""Fixtures of the API tests: real Postgres, a few rows, both implementations."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from decimal import Decimal
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django_redis import get_redis_connection
from hotels.caching import circuit_breaker, local
from hotels.models import Customer, Hotel, Suite
from lab_settings.kinds import Implementation, LocalCache, RedisCache
from prometheus_client import REGISTRY
from rest_framework.test import APIClient

CACHE_VARIANTS = [
    (redis, local)
    for redis in (RedisCache.OFF, RedisCache.PAGE, RedisCache.VERSIONED)
    for local in (LocalCache.OFF, LocalCache.LRU)
]
OUTCOMES = ("hit", "miss", "unavailable")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(stack) -> None:
    """Allow pytest-django to create its database in Postgres; the stack never creates one."""
    stack.sql("postgres", "ALTER ROLE hotel CREATEDB")


@pytest.fixture
def api() -> APIClient:
    return APIClient()


@pytest.fixture
def hotel(db) -> Hotel:
    return Hotel.objects.create(
        name="Grand Hôtel „Zürich“",
        address="1 Mill Row",
        city="Kraków",
        stars=4,
        description="é\\n",
    )


@pytest.fixture
def suite(hotel) -> Suite:
    return Suite.objects.create(hotel=hotel, number=1, capacity=3, price=Decimal("99.90"))


@pytest.fixture
def customers(db) -> list[Customer]:
    return [Customer.objects.create(name=f"Guest {n}", email=f"g{n}@example.org") for n in range(4)]


@pytest.fixture
def booking_data(suite, customers) -> dict[str, object]:
    """Return a valid booking of free nights."""
    return {
        "suite": str(suite.pk),
        "check_in": "2031-05-01",
        "check_out": "2031-05-04",
        "customers": [str(c.pk) for c in customers[:2]],
    }


@pytest.fixture(params=list(Implementation))
def implementation(request) -> Implementation:
    return request.param


def _with(settings: LazySettings, **changes: object) -> None:
    settings.LAB = settings.LAB.model_copy(update=changes)


@pytest.fixture
def booking_by(settings, implementation) -> Implementation:
    """Run the test with each value of LAB_BOOKING."""
    _with(settings, LAB_BOOKING=implementation)
    return implementation


@pytest.fixture
def detail_by(settings, implementation) -> Implementation:
    """Run the test with each value of LAB_DETAIL."""
    _with(settings, LAB_DETAIL=implementation)
    return implementation


class Caches:
    """Cache settings, and access to the Redis keys under this test's prefix."""

    def __init__(self, settings) -> None:
        self._settings = settings
        self.on()

    def on(self, **changes: object) -> None:
        self._settings.LAB = self._settings.LAB.model_copy(update=changes)

    @property
    def redis(self):
        return get_redis_connection()

    @property
    def prefix(self) -> str:
        return self._settings.CACHES["default"]["KEY_PREFIX"]

    def counts(self, layer: str) -> Callable[[], dict[str, int]]:
        """Return a function that returns the outcomes counted since this call, without zeros."""
        before = {outcome: _value(layer, outcome) for outcome in OUTCOMES}

        def since() -> dict[str, int]:
            now = {outcome: _value(layer, outcome) - before[outcome] for outcome in OUTCOMES}
            return {outcome: int(count) for outcome, count in now.items() if count}

        return since


class Pages(list[str]):
    """Paths of the list and of the detail page."""

    @staticmethod
    def builds(route: str) -> Callable[[], int]:
        """Return a function that returns the number of bodies built since this call."""

        def value() -> float:
            return REGISTRY.get_sample_value("lab_body_builds_total", {"route": route}) or 0

        before = value()
        return lambda: int(value() - before)


def _value(layer: str, outcome: str) -> float:
    labels = {"layer": layer, "outcome": outcome}
    return REGISTRY.get_sample_value("lab_cache_answers_total", labels) or 0


@pytest.fixture
def redis_options() -> str:
    """Return what is added to Redis's URL: it overrides the timeouts that are in use, since a busy
    machine can be late by more than the 80 ms after which the API continues without Redis.
    """
    return "?socket_timeout=10&socket_connect_timeout=10"


@pytest.fixture
def caches(settings, stack, monkeypatch, redis_options) -> Iterator[Caches]:
    """Yield the settings, all off, with empty caches and a closed circuit breaker."""
    configuration = deepcopy(settings.CACHES)
    configuration["default"]["KEY_PREFIX"] = f"test-{uuid4().hex}"
    configuration["default"]["LOCATION"] += redis_options
    settings.CACHES = configuration
    monkeypatch.setattr(circuit_breaker, "_breaker", circuit_breaker.Breaker())
    local.clear()
    yield Caches(settings)
    local.clear()


@pytest.fixture
def pages(suite) -> Pages:
    return Pages(["/api/hotel/", f"/api/hotel/{suite.hotel_id}/"])


@pytest.fixture(params=CACHE_VARIANTS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def cache_variant(request, caches):
    """Run the test with every pair of backend caches."""
    caches.on(LAB_REDIS_CACHE=request.param[0], LAB_LOCAL_CACHE=request.param[1])
