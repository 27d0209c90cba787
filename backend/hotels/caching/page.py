"""LAB_REDIS_CACHE=page: Django's cache_page, as the article did it, with what it costs.

What is kept is the pickled Response: of DRF's, the data beside the rendered bytes. Nobody waits for
anybody: all who find nothing build. Bookings show after up to 600 s.
"""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import cache_page

from hotels.caching import guard, tokens
from hotels.caching.ask import Ask, answered

LIFETIME_SECONDS = 600


def answer(ask: Ask) -> HttpResponse:
    """The kept page, with the ETag that it was built with, if any."""
    misses: list[Ask] = []
    failures = guard.failures_here()
    response = _kept(ask.request, ask, misses)
    ask.count("redis", _outcome(misses, guard.failures_here() > failures))
    tag = response.get("ETag")
    if response.status_code == 200 and tag and tokens.is_known(ask.request, tag):
        return _not_modified(response)
    return response


@cache_page(LIFETIME_SECONDS)
def _kept(_request: HttpRequest, ask: Ask, misses: list[Ask]) -> HttpResponse:
    """Only entered when nothing is kept. Django keeps 200s alone, so a 304 may pass."""
    misses.append(ask)
    return answered(ask)


def _outcome(misses: list[Ask], failed: bool) -> str:
    if failed:
        return "unavailable"
    return "miss" if misses else "hit"


def _not_modified(page: HttpResponse) -> HttpResponse:
    """A 304 repeats what the page says of its own lifetime (RFC 9110, 15.4.5)."""
    response = tokens.not_modified(page["ETag"])
    for name in ("Cache-Control", "Expires", "Age"):
        if name in page:
            response[name] = page[name]
    return response
