"""The three routes: validate, call, serialize, respond."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from config.http.errors import ApplicationError, body
from django.conf import settings
from django.http import HttpResponse
from idempotency.services import Answer, Claim, answer_once, read_key
from lab_settings.kinds import Implementation
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from hotels import errors, openapi, selectors, services
from hotels.serializers import (
    BookingInputSerializer,
    BookingSerializer,
    HotelDetailSerializer,
    HotelSerializer,
)


def _detail_naive(hotel_id: UUID) -> HttpResponse:
    """Return hotel detail as DRF's Response, which is rendered after the view.

    So cache_page stores the data in addition to the rendered bytes.
    """
    return Response(HotelDetailSerializer(selectors.hotel_detail_naive(hotel_id)).data)


def _detail_fast(hotel_id: UUID) -> HttpResponse:
    return HttpResponse(selectors.hotel_detail_fast(hotel_id), content_type="application/json")


_DETAIL: dict[Implementation, Callable[[UUID], HttpResponse]] = {
    Implementation.NAIVE: _detail_naive,
    Implementation.FAST: _detail_fast,
}
_BOOKING: dict[Implementation, Callable[..., services.CreatedBooking]] = {
    Implementation.NAIVE: services.booking_create_naive,
    Implementation.FAST: services.booking_create_fast,
}

# Created once: a serializer copies its fields on creation, which takes longer than the fields' own
# work. The two methods used here store nothing on the serializer, so threads can share it; `data`
# and `is_valid` would.
_INPUT = BookingInputSerializer()
_OUTPUT = BookingSerializer()
NO_DATA = "No data provided"


class HotelListApi(APIView):
    """List all hotels, without their suites."""

    @openapi.hotel_list
    def get(self, _request: Request) -> Response:
        return Response(HotelSerializer(selectors.hotel_list(), many=True).data)


class HotelDetailApi(APIView):
    """Return one hotel with its suites and their bookings."""

    @openapi.hotel_detail
    def get(self, _request: Request, hotel_id: UUID) -> HttpResponse:
        return _DETAIL[settings.LAB.LAB_DETAIL](hotel_id)


class BookingCreateApi(APIView):
    """Book a suite for one or more nights."""

    @openapi.booking_create
    def post(self, request: Request) -> Response:
        key = read_key(request.META)
        implementation = settings.LAB.LAB_BOOKING
        create, at_once = partial(book, _BOOKING[implementation]), _AT_ONCE.get(implementation)
        answer = answer_once(key, _VALIDATE[implementation](request.data), create, at_once)
        return Response(answer.body, answer.status, headers=answer.headers)


def book(create: Callable[..., services.CreatedBooking], values: dict[str, Any]) -> Answer:
    """Return the responses that a repeated request gets again: 201, or 409 for booked nights.

    All other errors are raised.
    """
    try:
        booking = create(**values)
    except ApplicationError as error:
        if error.message != errors.SLOT_TAKEN:
            raise
        return Answer(error.status_code, body(error.code, error.message))
    return Answer(201, _OUTPUT.to_representation(booking))


def book_at_once(claim: Claim, values: dict[str, Any]) -> Answer | None:
    """Create the booking and store its response with one statement, or return None if it can't."""
    booking = services.booking_of(**values)
    answer = Answer(201, _OUTPUT.to_representation(booking))
    is_booked = services.booking_create_at_once(booking, claim.parameters(answer))
    return answer if is_booked else None


_AT_ONCE = {Implementation.FAST: book_at_once}


def _validate_naive(data: Any) -> dict[str, Any]:
    """Return the validated input.

    Raises:
        ValidationError: `data` is not a valid booking.
    """
    serializer = BookingInputSerializer(data=data)
    serializer.is_valid(raise_exception=True)
    values: dict[str, Any] = serializer.validated_data
    return values


def _validate_fast(data: Any) -> dict[str, Any]:
    """Return the validated input, with the shared serializer. Raises the same error."""
    if data is None:
        # DRF's error for a body of `null`, where a serializer is created with the data.
        raise ValidationError({api_settings.NON_FIELD_ERRORS_KEY: [NO_DATA]})
    values: dict[str, Any] = _INPUT.run_validation(data)
    return values


_VALIDATE: dict[Implementation, Callable[[Any], dict[str, Any]]] = {
    Implementation.NAIVE: _validate_naive,
    Implementation.FAST: _validate_fast,
}
