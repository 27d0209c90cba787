"""The domain: hotels, their suites, customers, and bookings that never overlap."""

import time
import uuid
from datetime import date

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateRangeField, RangeOperators
from django.db import models


class DateRange(models.Func):
    """Postgres's daterange(from, to): half-open, like a stay."""

    function = "daterange"
    output_field = DateRangeField()


def version_start() -> int:
    """Return the first version of a row: the current time in microseconds.

    So a row that is deleted and created again, also by `load_db --reload`, never gets a version
    that a cache has with other content.
    """
    return time.time_ns() // 1000


class Hotel(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200)
    address = models.CharField(max_length=200)
    city = models.CharField(max_length=100)
    stars = models.PositiveSmallIntegerField()
    description = models.TextField()
    # Code that changes the hotel or its number of suites must raise it; see
    # selectors.hotel_version.
    version = models.BigIntegerField(default=version_start)

    class Meta:
        ordering = ("name", "id")

    def __str__(self) -> str:
        return self.name


class Suite(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    hotel = models.ForeignKey(
        Hotel, on_delete=models.CASCADE, related_name="suites", db_index=False
    )
    number = models.PositiveIntegerField()
    capacity = models.PositiveSmallIntegerField()
    price = models.DecimalField(max_digits=8, decimal_places=2)
    # Raised by every booking, under its row lock: bookings of one suite queue, those of different
    # suites do not.
    version = models.BigIntegerField(default=version_start)

    class Meta:
        ordering = ("number",)
        constraints = (
            # Its index also serves the lookup by hotel.
            models.UniqueConstraint(fields=("hotel", "number"), name="suite_number_once_per_hotel"),
        )

    def __str__(self) -> str:
        return f"suite {self.number}"


class Customer(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200)
    email = models.EmailField()

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.name


class Booking(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    suite = models.ForeignKey(
        Suite, on_delete=models.CASCADE, related_name="bookings", db_index=False
    )
    check_in = models.DateField()
    check_out = models.DateField()
    customers = models.ManyToManyField(Customer, related_name="bookings")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("check_in",)
        indexes = (models.Index(fields=("suite", "check_in"), name="booking_by_suite_and_date"),)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(check_out__gt=models.F("check_in")), name="booking_has_a_night"
            ),
            # Postgres's date range is wider than Python's: a date outside of these years would make
            # every read of its hotel fail.
            models.CheckConstraint(
                condition=models.Q(check_in__gte=date.min, check_out__lte=date.max),
                name="booking_is_in_years_1_to_9999",
            ),
            # Postgres prevents double bookings, not Python.
            ExclusionConstraint(
                name="booking_nights_are_free",
                expressions=[
                    ("suite", RangeOperators.EQUAL),
                    (DateRange("check_in", "check_out"), RangeOperators.OVERLAPS),
                ],
            ),
        )

    def __str__(self) -> str:
        return f"{self.check_in} to {self.check_out}"
