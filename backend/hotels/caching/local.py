"""LAB_LOCAL_CACHE=lru: each process keeps pages in its own memory, by functools.lru_cache.

Outermost: a hit asks nobody, neither Postgres nor Redis. So it is up to 600 s old, processes differ
from each other, and a booking never shows in one before its time. As lru_cache does not wait for
another thread, all who find nothing build.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache, partial

from django.conf import settings
from django.http import HttpResponse
from lab_settings.kinds import RedisCache

from hotels.caching import tokens
from hotels.caching.ask import Ask, NotKeptError
from hotels.caching.coding import coding_for

LIFETIME_SECONDS = 600
# Of about 1 MB each, in each process: list and 20 hotels, plain and compressed, and some room.
PAGES = 64
# What belongs to the page; the rest belongs to the request that built it.
_HEADERS = ("Content-Type", "Content-Encoding", "ETag", "Vary", "Cache-Control", "Expires")


@dataclass(frozen=True)
class Page:
    """A 200 as it is kept."""

    body: bytes
    headers: dict[str, str]


class Wanted:
    """lru_cache's argument: compared by its key alone, it carries how to make what is missing."""

    def __init__(self, key: Hashable, make: Callable[[], HttpResponse]) -> None:
        self._key = key
        self._make = make
        self.made = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wanted) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def page(self) -> Page:
        """Raises:
        NotKeptError: what was made is for this request alone.
        """
        # lru_cache keeps its arguments: the request must not stay with them.
        make, self._make = self._make, _used
        self.made = True
        response = make()
        if response.status_code != 200:
            raise NotKeptError(response)
        headers = {name: response[name] for name in _HEADERS if name in response}
        return Page(response.content, headers)


def pass_on(ask: Ask, inner: Callable[[Ask], HttpResponse]) -> HttpResponse:
    """LAB_LOCAL_CACHE=off."""
    return inner(ask)


def answer(ask: Ask, inner: Callable[[Ask], HttpResponse]) -> HttpResponse:
    """The kept page, with the ETag that it was built with, if any."""
    slot = int(time.monotonic() // LIFETIME_SECONDS)
    wanted = Wanted((ask.address, _coding(ask), slot), partial(inner, ask))
    try:
        page = _kept(wanted)
    except NotKeptError as error:
        ask.count("local", "miss")
        return error.response
    ask.count("local", "miss" if wanted.made else "hit")
    return _response(ask, page)


@lru_cache(maxsize=PAGES)
def _kept(wanted: Wanted) -> Page:
    return wanted.page()


def forget() -> None:
    """Empty this process' memory."""
    _kept.cache_clear()


def _coding(ask: Ask) -> str:
    """Only `versioned` has compressed variants; the others would be kept twice."""
    if settings.LAB.LAB_REDIS_CACHE is RedisCache.VERSIONED:
        return coding_for(ask.request)
    return tokens.IDENTITY


def _response(ask: Ask, page: Page) -> HttpResponse:
    tag = page.headers.get("ETag")
    if tag is None or not tokens.is_known(ask.request, tag):
        return HttpResponse(page.body, headers=page.headers)
    response = tokens.not_modified(tag)
    for name in ("Vary", "Cache-Control", "Expires"):
        if name in page.headers:
            response[name] = page.headers[name]
    return response


def _used() -> HttpResponse:
    raise AssertionError("lru_cache asked twice for one page")
