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

from hotels import documented, errors, selectors, services
from hotels.serializers import (
    BookingInputSerializer,
    BookingSerializer,
    HotelDetailSerializer,
    HotelSerializer,
)


def _detail_naive(hotel_id: UUID) -> HttpResponse:
    """DRF renders it after the view: what cache_page keeps holds the data beside the bytes."""
    return Response(HotelDetailSerializer(selectors.hotel_detail_naive(hotel_id)).data)


def _detail_fast(hotel_id: UUID) -> HttpResponse:
    return HttpResponse(selectors.hotel_detail_fast(hotel_id), content_type="application/json")


_DETAIL: dict[Implementation, Callable[[UUID], HttpResponse]] = {
    Implementation.NAIVE: _detail_naive,
    Implementation.FAST: _detail_fast,
}
_BOOKING: dict[Implementation, Callable[..., services.BookingMade]] = {
    Implementation.NAIVE: services.booking_create_naive,
    Implementation.FAST: services.booking_create_fast,
}

# Made once: a serializer copies its fields each time that it is made, which takes longer than what
# they do. These two methods keep nothing of what they are given, so threads may share them; `data`
# and `is_valid` would.
_FORM = BookingInputSerializer()
_MADE = BookingSerializer()
NOTHING = "No data provided"


class HotelListApi(APIView):
    """Every hotel, without its suites."""

    @documented.hotel_list
    def get(self, _request: Request) -> Response:
        return Response(HotelSerializer(selectors.hotel_list(), many=True).data)


class HotelDetailApi(APIView):
    """One hotel with its suites and their bookings."""

    @documented.hotel_detail
    def get(self, _request: Request, hotel_id: UUID) -> HttpResponse:
        return _DETAIL[settings.LAB.LAB_DETAIL](hotel_id)


class BookingCreateApi(APIView):
    """Book a suite for some nights."""

    @documented.booking_create
    def post(self, request: Request) -> Response:
        key = read_key(request.META)
        how = settings.LAB.LAB_BOOKING
        act, at_once = partial(book, _BOOKING[how]), _AT_ONCE.get(how)
        answer = answer_once(key, _WISH[how](request.data), act, at_once)
        return Response(answer.body, answer.status, headers=answer.headers)


def book(create: Callable[..., services.BookingMade], values: dict[str, Any]) -> Answer:
    """The answers that stay the same when asked again: made, or taken. Others are raised."""
    try:
        booking = create(**values)
    except ApplicationError as error:
        if error.message != errors.SLOT_TAKEN:
            raise
        return Answer(error.status_code, body(error.code, error.message))
    return Answer(201, _MADE.to_representation(booking))


def book_at_once(claim: Claim, values: dict[str, Any]) -> Answer | None:
    """The booking made and its answer kept by one statement; None where it takes more than that."""
    booking = services.booking_of(**values)
    answer = Answer(201, _MADE.to_representation(booking))
    made = services.booking_create_at_once(booking, claim.kept(answer))
    return answer if made else None


_AT_ONCE = {Implementation.FAST: book_at_once}


def _wish_naive(data: Any) -> dict[str, Any]:
    """Raises:
    ValidationError: `data` is no booking.
    """
    form = BookingInputSerializer(data=data)
    form.is_valid(raise_exception=True)
    wish: dict[str, Any] = form.validated_data
    return wish


def _wish_fast(data: Any) -> dict[str, Any]:
    """The same."""
    if data is None:
        # What DRF says of a body of `null`, where it is given the data itself.
        raise ValidationError({api_settings.NON_FIELD_ERRORS_KEY: [NOTHING]})
    wish: dict[str, Any] = _FORM.run_validation(data)
    return wish


_WISH: dict[Implementation, Callable[[Any], dict[str, Any]]] = {
    Implementation.NAIVE: _wish_naive,
    Implementation.FAST: _wish_fast,
}
