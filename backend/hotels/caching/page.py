"""LAB_REDIS_CACHE=page: Django's cache_page, as in the article, including its costs.

It stores the pickled Response; DRF's has the data in addition to the rendered bytes. There is no
lock: concurrent misses all render. Bookings are visible after up to 600 s.
"""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import cache_page

from hotels.caching import circuit_breaker, tokens
from hotels.caching.page_request import PageRequest, answer_uncached

LIFETIME_SECONDS = 600


def answer(page_request: PageRequest) -> HttpResponse:
    """Return the cached page with the ETag that it was rendered with, if any, or 304."""
    misses: list[PageRequest] = []
    failures = circuit_breaker.thread_failures()
    response = _cached_response(page_request.request, page_request, misses)
    page_request.count("redis", _outcome(misses, circuit_breaker.thread_failures() > failures))
    tag = response.get("ETag")
    if response.status_code == 200 and tag and tokens.is_known(page_request.request, tag):
        return _not_modified(response)
    return response


@cache_page(LIFETIME_SECONDS)
def _cached_response(
    _request: HttpRequest, page_request: PageRequest, misses: list[PageRequest]
) -> HttpResponse:
    """Render the page. Runs only on a miss. Django caches only 200 responses, so a 304 can pass."""
    misses.append(page_request)
    return answer_uncached(page_request)


def _outcome(misses: list[PageRequest], failed: bool) -> str:
    if failed:
        return "unavailable"
    return "miss" if misses else "hit"


def _not_modified(page: HttpResponse) -> HttpResponse:
    """Return a 304 with the page's caching headers (RFC 9110, 15.4.5)."""
    response = tokens.not_modified(page["ETag"])
    for name in ("Cache-Control", "Expires", "Age"):
        if name in page:
            response[name] = page[name]
    return response
