"""The content coding of a response, and the compression."""

import zlib

from django.http import HttpRequest

from hotels.caching.tokens import GZIP, IDENTITY

# Half of a body is random ids, where short matches cost more than they save. Z_FILTERED uses none:
# its output at level 4 is smaller than the default strategy's at level 9, in half the time
# (docs/measured/caching.md). Defaults: 6, Z_DEFAULT_STRATEGY.
_LEVEL = 4
_STRATEGY = zlib.Z_FILTERED
# The gzip format, with the largest window.
_WBITS = 31


def coding_for(request: HttpRequest) -> str:
    """Return gzip if Accept-Encoding allows it, else identity."""
    accepted = request.META.get("HTTP_ACCEPT_ENCODING", "")
    return GZIP if any(_accepts_gzip(part) for part in accepted.lower().split(",")) else IDENTITY


def compress(body: bytes) -> bytes:
    """Return `body` as gzip: always the same bytes, since zlib writes no time into the header."""
    coder = zlib.compressobj(_LEVEL, wbits=_WBITS, strategy=_STRATEGY)
    return coder.compress(body) + coder.flush()


def _accepts_gzip(part: str) -> bool:
    name, _, parameter = (piece.strip() for piece in part.partition(";"))
    if name not in (GZIP, "x-gzip"):
        return False
    _, _, weight = parameter.partition("q=")
    return not weight or weight.strip("0. ") != ""
