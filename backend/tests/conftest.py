"""Fixtures of the API's tests: the real Postgres, a few rows, and both implementations."""

from decimal import Decimal

import pytest
from config.env import Implementation
from django.conf import LazySettings
from hotels.models import Customer, Hotel, Suite
from rest_framework.test import APIClient


@pytest.fixture(scope="session")
def django_db_modify_db_settings(stack) -> None:
    """pytest-django makes its own database in the stack's Postgres."""


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
def wish(suite, customers) -> dict[str, object]:
    """A booking that is free to make."""
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
    from dataclasses import replace

    settings.LAB = replace(settings.LAB, **changes)


@pytest.fixture
def booking_by(settings, implementation) -> Implementation:
    """LAB_BOOKING in each position."""
    _with(settings, lab_booking=implementation)
    return implementation


@pytest.fixture
def detail_by(settings, implementation) -> Implementation:
    """LAB_DETAIL in each position."""
    _with(settings, lab_detail=implementation)
    return implementation
