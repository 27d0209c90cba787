"""Version tokens, and the ETags that contain them."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags

from hotels import selectors

# Raise it with every change of the body format: then neither Redis nor a client's 304 serves a
# cached body of the old format as the new one.
FORMAT = "v1"

GZIP = "gzip"
IDENTITY = "identity"


def list_version() -> str:
    """Return the list's token, which changes with every change of a hotel."""
    count, total = selectors.hotels_version()
    return f"{FORMAT}-{count}-{total}"


def detail_version(hotel_id: UUID) -> str | None:
    """Return the token of a hotel's page, or None if there is no such hotel."""
    version = selectors.hotel_version(hotel_id)
    return None if version is None else f"{FORMAT}-{version}"


def etag(version: str, coding: str = IDENTITY) -> str:
    """Return a strong ETag: the compressed variant has different bytes, so it has its own."""
    return f'"{version}"' if coding == IDENTITY else f'"{version}-{coding}"'


def is_known(request: HttpRequest, tag: str) -> bool:
    """Return whether If-None-Match contains `tag`, by weak comparison (RFC 9110, 13.1.2)."""
    known = parse_etags(request.META.get("HTTP_IF_NONE_MATCH", ""))
    return "*" in known or tag in (other.removeprefix("W/") for other in known)


def not_modified(tag: str) -> HttpResponse:
    return HttpResponseNotModified(headers={"ETag": tag})
