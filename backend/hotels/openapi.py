"""OpenAPI descriptions of the routes: every possible response, including Nginx's own."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from idempotency.services import KEY_PATTERN

from hotels.serializers import (
    BookingInputSerializer,
    BookingSerializer,
    ErrorSerializer,
    HotelDetailSerializer,
    HotelSerializer,
)


def _error(description: str) -> OpenApiResponse:
    return OpenApiResponse(ErrorSerializer, description)


_COMMON = {
    400: _error("Not valid HTTP, or not for this host."),
    405: _error("Method not allowed; see Allow."),
    406: _error("Accept allows no JSON."),
    413: _error("The body is too large."),
    414: _error("The address is too long."),
    431: _error("The headers are too large."),
    503: _error("Overloaded; retry after Retry-After seconds."),
    504: _error("The backend timed out."),
}
_RETRY_AFTER = OpenApiParameter(
    "Retry-After",
    OpenApiTypes.INT,
    OpenApiParameter.HEADER,
    description="Seconds.",
    response=[503, 504],
)
_KEY: Any = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": f"^{KEY_PATTERN}$"},
    OpenApiParameter.HEADER,
    description="A request with the same key and body gets the first response, for 24 hours.",
)
_REPLAYED = OpenApiParameter(
    "Idempotency-Replayed",
    {"type": "string", "enum": ["true"]},
    OpenApiParameter.HEADER,
    description="Present if this is the stored response of the key.",
    response=[201, 409],
)

_CACHED = {412: _error("The cached page does not match If-Match.")}

hotel_list = extend_schema(
    operation_id="hotel_list",
    parameters=[_RETRY_AFTER],
    responses={
        200: HotelSerializer(many=True),
        404: _error("`format` is not JSON."),
        **_CACHED,
        **_COMMON,
    },
)
hotel_detail = extend_schema(
    operation_id="hotel_detail",
    parameters=[_RETRY_AFTER],
    responses={
        200: HotelDetailSerializer,
        404: _error("Hotel not found."),
        **_CACHED,
        **_COMMON,
    },
)
booking_create = extend_schema(
    operation_id="booking_create",
    request=BookingInputSerializer,
    parameters=[_KEY, _REPLAYED, _RETRY_AFTER],
    responses={
        **_COMMON,
        201: BookingSerializer,
        400: _error("Wrong values; `fields` says which. Or not valid HTTP."),
        404: _error("Suite or customer not found."),
        409: _error("Nights already booked, or the key's request is in progress."),
        415: _error("Not JSON."),
        422: _error("The key was used with a different body."),
        429: _error("Too many bookings from this address (LAB_NGINX_CACHE=protected)."),
    },
)
