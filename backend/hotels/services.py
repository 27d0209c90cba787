"""Writes. Both implementations of a booking make the same checks in the same order and return the
same responses.
"""

import uuid
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any
from uuid import UUID

from config.http.errors import WrongInput
from config.postgres import prepared
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.utils import timezone
from psycopg.errors import ExclusionViolation
from rest_framework.exceptions import ValidationError

from hotels import errors
from hotels.models import Booking, Customer, Suite
from hotels.serializers import BookingWriteSerializer
from hotels.signals import booking_committed

_BOOK = prepared.statement("hotels", "book")
_BOOK_ONCE = prepared.statement("hotels", "book_once")


@dataclass(frozen=True)
class CreatedBooking:
    """A booking as in the response, with the customers in the order of the request."""

    id: UUID
    suite: UUID
    check_in: date
    check_out: date
    customers: list[UUID]
    created_at: datetime


def booking_create_naive(
    *, suite: UUID, check_in: date, check_out: date, customers: list[UUID]
) -> CreatedBooking:
    """Book with a ModelSerializer: a query per key, an INSERT, and the relations' own queries.

    Raises:
        WrongInput: suite or customers are unknown, or too many.
        ApplicationError: the nights are already booked.
    """
    with transaction.atomic():
        # Lock first: otherwise concurrent INSERTs into the exclusion constraint deadlock instead of
        # queueing.
        row = Suite.objects.select_for_update(no_key=True).filter(pk=suite).first()
        if row is None:
            raise errors.suite_unknown()
        if len(customers) > row.capacity:
            raise errors.too_many_customers(row.capacity)
        booking = _save(suite, check_in, check_out, customers)
        Suite.objects.filter(pk=suite).update(version=F("version") + 1)
        result = CreatedBooking(
            booking.pk, suite, check_in, check_out, customers, booking.created_at
        )
        _notify(result, row.hotel_id)
    return result


def booking_create_fast(
    *, suite: UUID, check_in: date, check_out: date, customers: list[UUID]
) -> CreatedBooking:
    """Book with one statement that locks, checks, inserts and increments the version.

    Raises:
        WrongInput: suite or customers are unknown, or too many.
        ApplicationError: the nights are already booked.
    """
    booking = booking_of(suite, check_in, check_out, customers)
    row = prepared.row(_BOOK, vars(booking))
    if row is None:
        raise _rejection(suite, customers)
    booking_id, hotel = row
    if booking_id is None:
        raise errors.slot_taken()
    _notify(booking, hotel)
    return booking


def booking_of(
    suite: UUID, check_in: date, check_out: date, customers: list[UUID]
) -> CreatedBooking:
    """Return a new booking of these values, which is not written yet."""
    return CreatedBooking(uuid.uuid4(), suite, check_in, check_out, customers, timezone.now())


def booking_create_at_once(booking: CreatedBooking, parameters: dict[str, Any]) -> bool:
    """Book like `booking_create_fast`, and store the response in the same statement.

    One round trip instead of five. `parameters` are those of Claim.parameters. Return False,
    without any effect, if the statement could not book.
    """
    try:
        with _own_savepoint():
            row = prepared.row(_BOOK_ONCE, vars(booking) | parameters)
    except IntegrityError:
        # Another request with the key stored its response between this statement's snapshot and its
        # lock.
        return False
    if row is None:
        return False
    _notify(booking, row[0])
    return True


def _notify(booking: CreatedBooking, hotel: UUID) -> None:
    """Send the signal after the commit. A receiver can't make the booking fail."""
    transaction.on_commit(
        partial(booking_committed.send_robust, CreatedBooking, booking=booking, hotel=hotel)
    )


def _save(suite: UUID, check_in: date, check_out: date, customers: list[UUID]) -> Booking:
    data = {"suite": suite, "check_in": check_in, "check_out": check_out, "customers": customers}
    serializer = BookingWriteSerializer(data=data)
    try:
        serializer.is_valid(raise_exception=True)
        return serializer.save()
    except ValidationError as error:
        raise errors.customers_unknown(_unknown_ids(customers)) from error
    except IntegrityError as error:
        raise _domain_error(error) from error


def _rejection(suite: UUID, customers: list[UUID]) -> WrongInput:
    """Return why the statement booked nothing. Runs queries only in this case."""
    capacity = Suite.objects.filter(pk=suite).values_list("capacity", flat=True).first()
    if capacity is None:
        return errors.suite_unknown()
    if len(customers) > capacity:
        return errors.too_many_customers(capacity)
    return errors.customers_unknown(_unknown_ids(customers))


def _unknown_ids(customers: list[UUID]) -> list[str]:
    known = set(Customer.objects.filter(pk__in=customers).values_list("pk", flat=True))
    return [str(pk) for pk in set(customers) - known]


def _own_savepoint() -> AbstractContextManager[Any]:
    """Return a savepoint if inside another transaction, which a failed statement must not abort."""
    return transaction.atomic() if connection.in_atomic_block else nullcontext()


def _domain_error(error: IntegrityError) -> Exception:
    return errors.slot_taken() if isinstance(error.__cause__, ExclusionViolation) else error
