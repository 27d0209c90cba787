"""LAB_REDIS_CACHE=off: nothing is kept; a client that has the page already gets a 304."""

from django.http import HttpResponse

from hotels.caching import tokens
from hotels.caching.ask import Ask


def answer(ask: Ask) -> HttpResponse:
    """The page as the view makes it, with its ETag."""
    version = ask.version()
    if version is None:
        return ask.build()
    tag = tokens.etag(version)
    if tokens.is_known(ask.request, tag):
        return tokens.not_modified(tag)
    response = ask.build()
    if response.status_code == 200:
        response["ETag"] = tag
    return response
