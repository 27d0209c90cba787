"""LAB_REDIS_CACHE=versioned: rendered bytes under a key with the version read from Postgres.

Never stale: a request after a change reads the new version, and so uses another key. Nothing is
deleted; old versions expire. A cache hit does not run DRF.
"""

from django.conf import settings
from django.db import connection
from django.http import HttpResponse
from django.utils.cache import patch_vary_headers

from hotels.caching import tokens
from hotels.caching.coding import coding_for, compress
from hotels.caching.page_request import JSON, PageRequest, UncacheableError
from hotels.caching.single_flight import StillBuildingError, get_or_build


def answer(page_request: PageRequest) -> HttpResponse:
    """Return the current version of the page, in the coding that the client accepts."""
    version = page_request.version()
    if version is None:
        return page_request.build()
    coding = coding_for(page_request.request)
    tag = tokens.etag(version, coding)
    try:
        response = _answer(page_request, version, coding, tag)
    except UncacheableError as error:
        return error.response
    except StillBuildingError:
        return page_request.reject()
    patch_vary_headers(response, ["Accept-Encoding"])
    return response


def _answer(page_request: PageRequest, version: str, coding: str, tag: str) -> HttpResponse:
    if tokens.is_known(page_request.request, tag):
        return tokens.not_modified(tag)
    if settings.LAB.pool_size is not None:
        # Back to the pool: a request that waits for another's rendering must not hold the
        # connection that the rendering needs.
        connection.close()
    body, outcome = _BODIES[coding](page_request, version)
    page_request.count("redis", outcome)
    response = HttpResponse(body, content_type=JSON, headers={"ETag": tag})
    if coding != tokens.IDENTITY:
        response["Content-Encoding"] = coding
    return response


def _identity(page_request: PageRequest, version: str) -> tuple[bytes, str]:
    return get_or_build(_key(page_request, version, tokens.IDENTITY), lambda: _build(page_request))


def _gzip(page_request: PageRequest, version: str) -> tuple[bytes, str]:
    """Compress the cached bytes on the first request for gzip."""
    return get_or_build(
        _key(page_request, version, tokens.GZIP),
        lambda: compress(_identity(page_request, version)[0]),
    )


_BODIES = {tokens.IDENTITY: _identity, tokens.GZIP: _gzip}


def _key(page_request: PageRequest, version: str, coding: str) -> str:
    """Return the cache key. The version begins with the format of the bodies."""
    return f"{page_request.address}:{version}:{coding}"


def _build(page_request: PageRequest) -> bytes:
    response = page_request.build()
    if response.status_code != 200:
        raise UncacheableError(response)
    return response.content
