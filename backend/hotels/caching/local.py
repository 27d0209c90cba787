"""LAB_LOCAL_CACHE=lru: each process caches pages in its own memory, with functools.lru_cache.

This is the outermost layer: a hit needs neither Postgres nor Redis. So a page is up to 600 s old,
processes differ from each other, and a booking is visible only after a page expires. lru_cache does
not wait for another thread, so concurrent misses all render.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache, partial

from django.conf import settings
from django.http import HttpResponse
from lab_settings.kinds import RedisCache

from hotels.caching import tokens
from hotels.caching.coding import coding_for
from hotels.caching.page_request import PageRequest, UncacheableError

LIFETIME_SECONDS = 600
# Pages per process, of about 1 MB each: list and 20 hotels, plain and compressed, and a reserve.
PAGES = 64
# Headers of the page; the others belong to the request that rendered it.
_HEADERS = ("Content-Type", "Content-Encoding", "ETag", "Vary", "Cache-Control", "Expires")


@dataclass(frozen=True)
class Page:
    """A cached 200 response."""

    body: bytes
    headers: dict[str, str]


class PageKey:
    """The argument of lru_cache, compared only by its key. It has the function that renders the
    page.
    """

    def __init__(self, key: Hashable, render: Callable[[], HttpResponse]) -> None:
        self._key = key
        self._render = render
        self.is_rendered = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PageKey) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def page(self) -> Page:
        """Render the page.

        Raises:
            UncacheableError: the response is not a 200, so it is only for this request.
        """
        # lru_cache stores its arguments, and must not keep the request alive.
        render, self._render = self._render, _fail_second_render
        self.is_rendered = True
        response = render()
        if response.status_code != 200:
            raise UncacheableError(response)
        headers = {name: response[name] for name in _HEADERS if name in response}
        return Page(response.content, headers)


def skip(page_request: PageRequest, inner: Callable[[PageRequest], HttpResponse]) -> HttpResponse:
    """Skip this layer (LAB_LOCAL_CACHE=off)."""
    return inner(page_request)


def answer(page_request: PageRequest, inner: Callable[[PageRequest], HttpResponse]) -> HttpResponse:
    """Return the cached page with the ETag that it was rendered with, if any, or 304."""
    slot = int(time.monotonic() // LIFETIME_SECONDS)
    key = PageKey((page_request.address, _coding(page_request), slot), partial(inner, page_request))
    try:
        page = _cached_page(key)
    except UncacheableError as error:
        page_request.count("local", "miss")
        return error.response
    page_request.count("local", "miss" if key.is_rendered else "hit")
    return _response(page_request, page)


@lru_cache(maxsize=PAGES)
def _cached_page(key: PageKey) -> Page:
    return key.page()


def clear() -> None:
    """Empty this process's cache."""
    _cached_page.cache_clear()


def _coding(page_request: PageRequest) -> str:
    """Return the coding of the cache key.

    Only `versioned` has compressed variants; the others would be cached twice.
    """
    if settings.LAB.LAB_REDIS_CACHE is RedisCache.VERSIONED:
        return coding_for(page_request.request)
    return tokens.IDENTITY


def _response(page_request: PageRequest, page: Page) -> HttpResponse:
    tag = page.headers.get("ETag")
    if tag is None or not tokens.is_known(page_request.request, tag):
        return HttpResponse(page.body, headers=page.headers)
    response = tokens.not_modified(tag)
    for name in ("Vary", "Cache-Control", "Expires"):
        if name in page.headers:
            response[name] = page.headers[name]
    return response


def _fail_second_render() -> HttpResponse:
    raise AssertionError("lru_cache rendered one page twice")
