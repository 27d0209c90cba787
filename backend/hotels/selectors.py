"""Reads. Where the lab compares implementations, each is one function behind the same view."""

from collections import defaultdict
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from django.db import connection
from django.db.models import Count, QuerySet
from django.http import Http404

from hotels.models import Booking, Hotel, Suite

_HOTEL, _SUITE = Hotel._meta.db_table, Suite._meta.db_table
_HOTEL_VERSION = f"""
SELECT hotel.version + coalesce(
    (SELECT sum(suite.version) FROM {_SUITE} suite WHERE suite.hotel_id = hotel.id), 0
)
FROM {_HOTEL} hotel WHERE hotel.id = %s
"""  # noqa: S608 - names of our own tables
_HOTELS_VERSION = f"SELECT count(*), coalesce(sum(version), 0) FROM {_HOTEL}"  # noqa: S608


def hotel_list() -> QuerySet[Hotel]:
    """Every hotel with its number of suites."""
    return Hotel.objects.annotate(suite_count=Count("suites"))


def hotel_version(hotel_id: UUID) -> int | None:
    """A number that grows with every change of what hotel detail shows; None for no such hotel.

    The suites' versions are summed, so that bookings of different suites need not wait for one
    counter. One query on one index.
    """
    row = _row(_HOTEL_VERSION, [hotel_id])
    return None if row is None else int(row[0])


def hotels_version() -> tuple[int, int]:
    """How many hotels there are, and the sum of their versions: one of the two changes with every
    change of what the list shows. One query; the sum may be larger than Postgres' bigint.
    """
    count, total = _row(_HOTELS_VERSION, []) or (0, 0)
    return count, int(total)


def _row(statement: str, values: list[Any]) -> tuple[Any, ...] | None:
    """For what every cached answer asks: the ORM takes five times as long to put such a statement
    together as Postgres takes to answer it.
    """
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
        return row


def hotel_detail_naive(hotel_id: UUID) -> Hotel:
    """The hotel as most of us would read it, for nested serializers: everything prefetched.

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
    """The same as JSON from plain rows: no model instances, no serializer fields, orjson.

    Raises:
        Http404: there is no such hotel.
    """
    fields = ("id", "name", "address", "city", "stars", "description")
    hotel = Hotel.objects.filter(pk=hotel_id).values(*fields).first()
    if hotel is None:
        raise Http404
    bookings = _bookings_by_suite(hotel_id)
    suites = Suite.objects.filter(hotel_id=hotel_id).values("id", "number", "capacity", "price")
    hotel["suites"] = [{**suite, "bookings": bookings[suite["id"]]} for suite in suites]
    return _escaped(orjson.dumps(hotel, default=_price))


def _escaped(document: bytes) -> bytes:
    """DRF escapes the two line ends that JSON allows in a string and old JavaScript does not."""
    return document.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")


def _bookings_by_suite(hotel_id: UUID) -> dict[UUID, list[dict[str, Any]]]:
    found: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    rows = list(
        Booking.objects.filter(suite__hotel_id=hotel_id).values_list(
            "suite_id", "id", "check_in", "check_out"
        )
    )
    # After the bookings: one that is made in between has no customers here, and is not shown.
    customers = _customers_by_booking(hotel_id)
    for suite_id, booking_id, check_in, check_out in rows:
        found[suite_id].append(
            {
                "id": booking_id,
                "check_in": check_in,
                "check_out": check_out,
                "customers": customers[booking_id],
            }
        )
    return found


def _customers_by_booking(hotel_id: UUID) -> dict[UUID, list[UUID]]:
    found: dict[UUID, list[UUID]] = defaultdict(list)
    links = Booking.customers.through.objects.filter(booking__suite__hotel_id=hotel_id)
    for booking_id, customer_id in links.order_by("customer_id").values_list(
        "booking_id", "customer_id"
    ):
        found[booking_id].append(customer_id)
    return found


def _price(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value)} is not JSON")
