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
    400: _error("Invalid HTTP, or an unknown host."),
    405: _error("Method not allowed. Allow lists the methods."),
    406: _error("Accept excludes application/json."),
    413: _error("The body is too large."),
    414: _error("The URL is too long."),
    431: _error("The headers are too large."),
    503: _error(
        "The server is overloaded, or the database is unavailable. Retry after Retry-After seconds."
    ),
    504: _error("The backend timed out."),
}
_RETRY_AFTER = OpenApiParameter(
    "Retry-After",
    OpenApiTypes.INT,
    OpenApiParameter.HEADER,
    description="Seconds until a retry.",
    response=[503, 504],
)
_KEY: Any = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": f"^{KEY_PATTERN}$"},
    OpenApiParameter.HEADER,
    description="For 24 hours, requests with the same key and body get the first one's response.",
)
_REPLAYED = OpenApiParameter(
    "Idempotency-Replayed",
    {"type": "string", "enum": ["true"]},
    OpenApiParameter.HEADER,
    description="Present if the response is the stored one of the key.",
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
        400: _error("Invalid values, listed in `fields`, or invalid HTTP."),
        404: _error("Suite or customer not found."),
        409: _error("The nights are already booked, or the key's first request is in progress."),
        415: _error("Content-Type is not application/json."),
        422: _error("The key was used with a different body."),
        429: _error("Rate limit of bookings per client address (LAB_NGINX_CACHE=protected)."),
    },
)
