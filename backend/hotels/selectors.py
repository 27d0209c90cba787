"""Reads. Where the lab compares implementations, each is one function behind the same view."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from config.postgres import prepared
from django.db.models import Count, QuerySet
from django.http import Http404

from hotels.models import Booking, Hotel, Suite

_HOTEL, _SUITE, _BOOKING = (model._meta.db_table for model in (Hotel, Suite, Booking))
_HOTEL_VERSION = f"""
SELECT hotel.version + coalesce(
    (SELECT sum(suite.version) FROM {_SUITE} suite WHERE suite.hotel_id = hotel.id), 0
)
FROM {_HOTEL} hotel WHERE hotel.id = %(hotel)s
"""  # noqa: S608 - names of our own tables
_HOTELS_VERSION = f"SELECT count(*), coalesce(sum(version), 0) FROM {_HOTEL}"  # noqa: S608
# One row for each suite, in the order of the models' `ordering`. Its bookings are JSON already,
# with nothing in them to escape: a Python object for each of thousands of ids would be most of the
# work. `customer_ids` is Postgres' own copy of the links, in their order (migration 0003).
_SUITES = f"""
SELECT suite.id, suite.number, suite.capacity, suite.price, concat('[', array_to_string(ARRAY(
    SELECT concat(
        '{{"id":"', booking.id,
        '","check_in":"', booking.check_in,
        '","check_out":"', booking.check_out,
        '","customers":', array_to_json(booking.customer_ids),
        '}}'
    )
    FROM {_BOOKING} booking WHERE booking.suite_id = suite.id ORDER BY booking.check_in
), ','), ']')
FROM {_SUITE} suite WHERE suite.hotel_id = %(hotel)s ORDER BY suite.number
"""  # noqa: S608


def hotel_list() -> QuerySet[Hotel]:
    """Every hotel with its number of suites."""
    return Hotel.objects.annotate(suite_count=Count("suites"))


def hotel_version(hotel_id: UUID) -> int | None:
    """A number that grows with every change of what hotel detail shows; None for no such hotel.

    The suites' versions are summed, so that bookings of different suites need not wait for one
    counter. One query on one index; the ORM takes five times as long to put it together as Postgres
    takes to answer it.
    """
    row = prepared.row(_HOTEL_VERSION, {"hotel": hotel_id})
    return None if row is None else int(row[0])


def hotels_version() -> tuple[int, int]:
    """How many hotels there are, and the sum of their versions: one of the two changes with every
    change of what the list shows. One query; the sum may be larger than Postgres' bigint.
    """
    count, total = prepared.row(_HOTELS_VERSION, {}) or (0, 0)
    return count, int(total)


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
    """The same as JSON: the bookings' text is put together by Postgres, the rest by orjson.

    Raises:
        Http404: there is no such hotel.
    """
    fields = ("id", "name", "address", "city", "stars", "description")
    found = Hotel.objects.filter(pk=hotel_id).values(*fields).first()
    if found is None:
        raise Http404
    hotel: dict[str, Any] = {name: _escaped(value) for name, value in found.items()}
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


def _escaped(value: Any) -> orjson.Fragment:
    """DRF escapes the two line ends that JSON allows in a string and old JavaScript does not.

    Value by value: the page is a megabyte, of which the hotel's own texts alone can have any.
    """
    document = orjson.dumps(value)
    return orjson.Fragment(
        document.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    )
