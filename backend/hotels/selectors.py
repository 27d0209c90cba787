"""Reads. Each implementation that the lab compares is one function behind the same view."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from config.postgres import prepared
from django.db.models import Count, QuerySet
from django.http import Http404

from hotels.models import Hotel

_HOTEL_VERSION = prepared.statement("hotels", "hotel_version")
_HOTELS_VERSION = "SELECT count(*), coalesce(sum(version), 0) FROM hotels_hotel"
_SUITES = prepared.statement("hotels", "suites")


def hotel_list() -> QuerySet[Hotel]:
    """Return every hotel with its number of suites."""
    return Hotel.objects.annotate(suite_count=Count("suites"))


def hotel_version(hotel_id: UUID) -> int | None:
    """Return a number that grows with every change of hotel detail; None for an unknown hotel.

    One query on one index. The ORM takes five times as long to build the query as Postgres takes to
    run it.
    """
    row = prepared.row(_HOTEL_VERSION, {"hotel": hotel_id})
    return None if row is None else int(row[0])


def hotels_version() -> tuple[int, int]:
    """Return the number of hotels and the sum of their versions, with one query.

    Every change of the list changes one of the two. The sum can exceed Postgres's bigint.
    """
    count, total = prepared.row(_HOTELS_VERSION, {}) or (0, 0)
    return count, int(total)


def hotel_detail_naive(hotel_id: UUID) -> Hotel:
    """Return the hotel for nested serializers, with everything prefetched, as in most projects.

    Raises:
        Http404: there is no such hotel.
    """
    hotel = (
        Hotel.objects.prefetch_related("suites__bookings__customers").filter(pk=hotel_id).first()
    )
    if hotel is None:
        raise Http404
    return hotel


def hotel_detail_fast(hotel_id: UUID) -> bytes:
    """Return hotel detail as JSON: Postgres builds the text of the bookings, orjson the rest.

    Raises:
        Http404: there is no such hotel.
    """
    fields = ("id", "name", "address", "city", "stars", "description")
    row = Hotel.objects.filter(pk=hotel_id).values(*fields).first()
    if row is None:
        raise Http404
    hotel: dict[str, Any] = {name: _escape(value) for name, value in row.items()}
    hotel["suites"] = [_suite(*row) for row in prepared.rows(_SUITES, {"hotel": hotel_id})]
    return orjson.dumps(hotel)


def _suite(pk: UUID, number: int, capacity: int, price: Decimal, bookings: str) -> dict[str, Any]:
    return {
        "id": pk,
        "number": number,
        "capacity": capacity,
        "price": str(price),
        "bookings": orjson.Fragment(bookings),
    }


def _escape(value: Any) -> orjson.Fragment:
    """Return `value` as JSON, with U+2028 and U+2029 escaped as DRF does.

    JSON allows these line ends in a string, old JavaScript does not. They are replaced value by
    value: the page is a megabyte, and only the hotel's own texts can contain them.
    """
    document = orjson.dumps(value)
    return orjson.Fragment(
        document.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    )
