"""LAB_REDIS_CACHE=versioned: rendered bytes under a key that holds the version read from Postgres.

Never stale: whoever asks after a change reads its version, and so another key. Nothing is deleted;
old versions run out. The way to a kept body does not enter DRF.
"""

from django.conf import settings
from django.db import connection
from django.http import HttpResponse
from django.utils.cache import patch_vary_headers

from hotels.caching import tokens
from hotels.caching.ask import JSON, Ask, NotKeptError
from hotels.caching.coding import coding_for, compressed
from hotels.caching.single_flight import kept_or_made


def answer(ask: Ask) -> HttpResponse:
    """The page of this version in the coding that the client takes."""
    version = ask.version()
    if version is None:
        return ask.build()
    coding = coding_for(ask.request)
    tag = tokens.etag(version, coding)
    try:
        response = _answer(ask, version, coding, tag)
    except NotKeptError as error:
        return error.response
    patch_vary_headers(response, ["Accept-Encoding"])
    return response


def _answer(ask: Ask, version: str, coding: str, tag: str) -> HttpResponse:
    if tokens.is_known(ask.request, tag):
        return tokens.not_modified(tag)
    if settings.LAB.pool_size is not None:
        # Back to the pool: who waits for another's build must not hold what a builder needs.
        connection.close()
    body, outcome = _BODIES[coding](ask, version)
    ask.count("redis", outcome)
    response = HttpResponse(body, content_type=JSON, headers={"ETag": tag})
    if coding != tokens.IDENTITY:
        response["Content-Encoding"] = coding
    return response


def _identity(ask: Ask, version: str) -> tuple[bytes, str]:
    return kept_or_made(_key(ask, version, tokens.IDENTITY), lambda: _built(ask))


def _gzip(ask: Ask, version: str) -> tuple[bytes, str]:
    """Made of the kept bytes when it is first asked for."""
    return kept_or_made(
        _key(ask, version, tokens.GZIP), lambda: compressed(_identity(ask, version)[0])
    )


_BODIES = {tokens.IDENTITY: _identity, tokens.GZIP: _gzip}


def _key(ask: Ask, version: str, coding: str) -> str:
    """The version begins with the bodies' format."""
    return f"{ask.address}:{version}:{coding}"


def _built(ask: Ask) -> bytes:
    response = ask.build()
    if response.status_code != 200:
        raise NotKeptError(response)
    return response.content
