"""Caching of list and detail: the layers of a request, outermost first.

`cached` wraps a view in hotels/urls.py; the view does not depend on it. Each layer is one module
with one function. The settings select the layers for each request. docs/caching.md shows their
costs.

local      in each process, by time          LAB_LOCAL_CACHE
page       in Redis, by time, as Response    LAB_REDIS_CACHE=page
versioned  in Redis, by version, as bytes    LAB_REDIS_CACHE=versioned
off        no cache, but an ETag             LAB_REDIS_CACHE=off
nginx      headers for Nginx's cache         LAB_NGINX_CACHE

Stock Django (lab_settings: is_stock) has no ETags.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from config.http import errors
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from lab_settings.durations import seconds as seconds_of
from lab_settings.kinds import LocalCache, NginxCache, RedisCache
from ops.token import has_lab_token

from hotels.caching import local, page, versioned
from hotels.caching.page_request import JSON, PageRequest, answer_uncached

_JSON_TYPES = {"application/json", "application/*", "*/*"}

View = Callable[..., HttpResponse]
Layer = Callable[[PageRequest], HttpResponse]

_REDIS: dict[RedisCache, Layer] = {
    RedisCache.OFF: answer_uncached,
    RedisCache.PAGE: page.answer,
    RedisCache.VERSIONED: versioned.answer,
}
_LOCAL: dict[LocalCache, Callable[[PageRequest, Layer], HttpResponse]] = {
    LocalCache.OFF: local.skip,
    LocalCache.LRU: local.answer,
}

# While one request fetches the new page, Nginx serves the stale one to the others, for this long at
# most. With a longer time, the first client after a quiet period would get a page as old as that.
STALE_WHILE_REVALIDATE_SECONDS = 1
# How long Nginx may serve the stale page while the backend is unreachable.
STALE_IF_ERROR_SECONDS = 60


def cached(view: View, route: str, version: Callable[..., str | None]) -> View:
    """Wrap `view` in the active layers.

    `version` returns the page's version for the route's arguments, or None if there is no such
    page.
    """

    @wraps(view)
    def answer(request: HttpRequest, **ids: Any) -> HttpResponse:
        if not _is_cacheable(request):
            return view(request, **ids)
        _remove_client_headers(request)
        try:
            response = _answer_through_layers(PageRequest(request, route, view, version, ids))
        except errors.DATABASE_ERRORS as error:
            return errors.database_unavailable(error)
        if response.status_code in (200, 304):
            _set_nginx_headers(response)
        return _without_body(response) if request.method == "HEAD" else response

    return answer


def _is_cacheable(request: HttpRequest) -> bool:
    """Return whether the request is for the one body that all clients share.

    The view rejects all others.
    """
    return (
        request.method in ("GET", "HEAD")
        and request.GET.get("format", "json") == "json"
        and _accepts_json(request.headers.get("Accept", "*/*"))
    )


def _remove_client_headers(request: HttpRequest) -> None:
    """Remove the client's headers and the query string: all clients get the same body.

    cache_page's key depends on the whole URL, and on the credentials if there are any. A client
    could fill Redis with copies of one page.
    """
    request.META |= {"HTTP_ACCEPT": JSON, "HTTP_HOST": "localhost", "QUERY_STRING": ""}
    request.META.pop("HTTP_AUTHORIZATION", None)
    # Django caches what it has read from META in these attributes.
    for attribute in ("headers", "GET"):
        vars(request).pop(attribute, None)


def _accepts_json(accept: str) -> bool:
    """Return whether Accept allows JSON.

    Parameters are ignored, as DRF does. Django's own parser fails on some of them.
    """
    types = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return not types.isdisjoint(_JSON_TYPES)


def _without_body(response: HttpResponse) -> HttpResponse:
    """Return GET's headers without the body: gunicorn logs a warning if HEAD has a body."""
    if response.status_code != 304:
        response["Content-Length"] = str(len(response.content))
        response.content = b""
    return response


def _answer_through_layers(page_request: PageRequest) -> HttpResponse:
    if has_lab_token(page_request.request):
        # The lab's own requests leave the caches as warm or cold as they were.
        return answer_uncached(page_request)
    return _LOCAL[settings.LAB.LAB_LOCAL_CACHE](page_request, _REDIS[settings.LAB.LAB_REDIS_CACHE])


def _set_nginx_headers(response: HttpResponse) -> None:
    """Set Nginx's cache lifetime from the setting, whatever the other layers set (protected).

    With `off` and `basic`, Nginx uses the headers of the other layers.
    """
    if settings.LAB.LAB_NGINX_CACHE is not NginxCache.PROTECTED:
        return
    seconds = round(seconds_of(settings.LAB.LAB_NGINX_CACHE_TTL))
    response["X-Accel-Expires"] = str(seconds)
    response["Cache-Control"] = (
        f"max-age={seconds}, stale-while-revalidate={STALE_WHILE_REVALIDATE_SECONDS}, "
        f"stale-if-error={STALE_IF_ERROR_SECONDS}"
    )
    for name in ("Expires", "Age"):
        del response[name]
