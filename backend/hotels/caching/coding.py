"""Which compressed variant a client gets, and how it is made."""

import gzip

from django.http import HttpRequest

from hotels.caching.tokens import GZIP, IDENTITY

# Ids hardly compress: level 1 takes a third of the time of level 6 and leaves 10 % more
# (docs/caching.md). Default: 9.
LEVEL = 1


def coding_for(request: HttpRequest) -> str:
    """gzip when Accept-Encoding allows it, else identity."""
    accepted = request.META.get("HTTP_ACCEPT_ENCODING", "")
    return GZIP if any(_takes_gzip(part) for part in accepted.lower().split(",")) else IDENTITY


def compressed(body: bytes) -> bytes:
    """The same bytes for the same body: without the time that gzip would write into it."""
    return gzip.compress(body, LEVEL, mtime=0)


def _takes_gzip(part: str) -> bool:
    name, _, parameter = (piece.strip() for piece in part.partition(";"))
    if name not in (GZIP, "x-gzip"):
        return False
    _, _, weight = parameter.partition("q=")
    return not weight or weight.strip("0. ") != ""
