"""LAB_REDIS_CACHE=versioned: rendered bytes under a key with the version read from Postgres.

Never stale: a request after a change reads the new version, and so uses another key. Nothing is
deleted; old versions expire. A cache hit does not run DRF.
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
    """Return the current version of the page, in the coding that the client accepts."""
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
        # Back to the pool: a request that waits for another's rendering must not hold the
        # connection that the rendering needs.
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
    """Compress the cached bytes on the first request for gzip."""
    return kept_or_made(
        _key(ask, version, tokens.GZIP), lambda: compressed(_identity(ask, version)[0])
    )


_BODIES = {tokens.IDENTITY: _identity, tokens.GZIP: _gzip}


def _key(ask: Ask, version: str, coding: str) -> str:
    """Return the cache key. The version begins with the format of the bodies."""
    return f"{ask.address}:{version}:{coding}"


def _built(ask: Ask) -> bytes:
    response = ask.build()
    if response.status_code != 200:
        raise NotKeptError(response)
    return response.content
