"""Input and output serializers."""

import re
from typing import Any

from rest_framework import serializers

from hotels import errors
from hotels.models import Booking, Hotel, Suite


class HotelSerializer(serializers.ModelSerializer[Hotel]):
    suite_count = serializers.IntegerField()

    class Meta:
        model = Hotel
        fields = ("id", "name", "address", "city", "stars", "description", "suite_count")


class BookingOfSuiteSerializer(serializers.ModelSerializer[Booking]):
    customers: Any = serializers.PrimaryKeyRelatedField(many=True, read_only=True)

    class Meta:
        model = Booking
        fields = ("id", "check_in", "check_out", "customers")


class SuiteSerializer(serializers.ModelSerializer[Suite]):
    bookings = BookingOfSuiteSerializer(many=True)

    class Meta:
        model = Suite
        fields = ("id", "number", "capacity", "price", "bookings")


class HotelDetailSerializer(serializers.ModelSerializer[Hotel]):
    suites = SuiteSerializer(many=True)

    class Meta:
        model = Hotel
        fields = ("id", "name", "address", "city", "stars", "description", "suites")


# As in the schema's formats.
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class IdField(serializers.UUIDField):
    """A UUID in its standard form only.

    DRF also accepts 5 for 00000000-0000-0000-0000-000000000005, braces, and digits of any script.
    """

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or not _ID.fullmatch(data):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


class DayField(serializers.DateField):
    """A date as YYYY-MM-DD only. DRF also accepts 2031-W18-4, 2031-5-1 and digits of any script."""

    def to_internal_value(self, value: Any) -> Any:
        if not isinstance(value, str) or not _DAY.fullmatch(value):
            self.fail("invalid", format="YYYY-MM-DD")
        return super().to_internal_value(value)


class BookingInputSerializer(serializers.Serializer[Any]):
    """Values of a new booking. The service checks that suite and customers exist."""

    suite = IdField()
    check_in = DayField()
    check_out = DayField()
    customers = serializers.ListField(
        child=IdField(), allow_empty=False, min_length=1, max_length=100
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["check_out"] <= attrs["check_in"]:
            raise serializers.ValidationError({"check_out": [errors.CHECK_OUT_TOO_EARLY]})
        if len(set(attrs["customers"])) < len(attrs["customers"]):
            raise serializers.ValidationError({"customers": [errors.DUPLICATE_CUSTOMER]})
        return attrs


class BookingWriteSerializer(serializers.ModelSerializer[Booking]):
    """Write a booking with LAB_BOOKING=naive: DRF looks up every key and saves the relations."""

    class Meta:
        model = Booking
        fields = ("suite", "check_in", "check_out", "customers")


class BookingSerializer(serializers.Serializer[Any]):
    """A booking, with the customers in the order of the request."""

    id = serializers.UUIDField()
    suite = serializers.UUIDField()
    check_in = serializers.DateField()
    check_out = serializers.DateField()
    customers = serializers.ListField(child=serializers.UUIDField())
    created_at = serializers.DateTimeField()


class ErrorBodySerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    fields = serializers.DictField(required=False)  # type: ignore[assignment]


class ErrorSerializer(serializers.Serializer[Any]):
    error = ErrorBodySerializer()
