"""Version tokens and the ETags that are made of them."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags

from hotels import selectors

# To be raised with every change of what the bodies look like: no kept body of the old form is
# served under the new one, neither from Redis nor by a client's 304.
FORMAT = "v1"

GZIP = "gzip"
IDENTITY = "identity"


def list_version() -> str:
    """The list's token: another one after every change of a hotel."""
    count, total = selectors.hotels_version()
    return f"{FORMAT}-{count}-{total}"


def detail_version(hotel_id: UUID) -> str | None:
    """The token of one hotel's page; None when there is no such hotel."""
    version = selectors.hotel_version(hotel_id)
    return None if version is None else f"{FORMAT}-{version}"


def etag(version: str, coding: str = IDENTITY) -> str:
    """A strong ETag: other bytes have another one, so the compressed variant has its own."""
    return f'"{version}"' if coding == IDENTITY else f'"{version}-{coding}"'


def is_known(request: HttpRequest, tag: str) -> bool:
    """Whether the client has that very page: If-None-Match, compared weakly (RFC 9110, 13.1.2)."""
    known = parse_etags(request.META.get("HTTP_IF_NONE_MATCH", ""))
    return "*" in known or tag in (other.removeprefix("W/") for other in known)


def not_modified(tag: str) -> HttpResponse:
    """304."""
    return HttpResponseNotModified(headers={"ETag": tag})
