"""Keeping list and detail: which layers a request goes through, outermost first.

A view knows nothing of it: `cached` wraps it in hotels/urls.py. Each layer is one module with one
function; the settings choose among them per request. docs/caching.md says what each one costs.

local      in each process, by time          LAB_LOCAL_CACHE
page       in Redis, by time, as Response    LAB_REDIS_CACHE=page
versioned  in Redis, by version, as bytes    LAB_REDIS_CACHE=versioned
off        nothing kept, but an ETag         LAB_REDIS_CACHE=off
nginx      what Nginx is told to do          LAB_NGINX_CACHE

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
from hotels.caching.ask import JSON, Ask, answered

_JSON_TYPES = {"application/json", "application/*", "*/*"}

View = Callable[..., HttpResponse]
Layer = Callable[[Ask], HttpResponse]

_REDIS: dict[RedisCache, Layer] = {
    RedisCache.OFF: answered,
    RedisCache.PAGE: page.answer,
    RedisCache.VERSIONED: versioned.answer,
}
_LOCAL: dict[LocalCache, Callable[[Ask, Layer], HttpResponse]] = {
    LocalCache.OFF: local.pass_on,
    LocalCache.LRU: local.answer,
}

# While one request fetches the new page, Nginx gives the others the old one, for this long at most.
# Longer would let the first reader after a quiet time get a page as old as that.
STALE_WHILE_REVALIDATE_SECONDS = 1
# How long Nginx may hand out the old page when the backend can't be reached.
STALE_IF_ERROR_SECONDS = 60


def cached(view: View, route: str, version: Callable[..., str | None]) -> View:
    """`view` behind the layers that are on.

    `version` reads the page's version with the route's arguments; None when there is no such page.
    """

    @wraps(view)
    def answer(request: HttpRequest, **ids: Any) -> HttpResponse:
        if not _may_be_kept(request):
            return view(request, **ids)
        _forget_the_reader(request)
        try:
            response = _through_layers(Ask(request, route, view, version, ids))
        except errors.DATABASE_AWAY as error:
            return errors.database_away(error)
        if response.status_code in (200, 304):
            _tell_nginx(response)
        return _without_body(response) if request.method == "HEAD" else response

    return answer


def _may_be_kept(request: HttpRequest) -> bool:
    """Whether it asks for the one body that everyone gets; the view refuses the rest."""
    return (
        request.method in ("GET", "HEAD")
        and request.GET.get("format", "json") == "json"
        and _takes_json(request.headers.get("Accept", "*/*"))
    )


def _forget_the_reader(request: HttpRequest) -> None:
    """Everyone gets the same body: nothing of these may reach what makes it, or tell two pages
    apart. (cache_page goes by the whole address, and by the credentials where there are some: a
    client could fill Redis with copies of one page.)
    """
    request.META |= {"HTTP_ACCEPT": JSON, "HTTP_HOST": "localhost", "QUERY_STRING": ""}
    request.META.pop("HTTP_AUTHORIZATION", None)
    # Django keeps what it read of META here.
    for read in ("headers", "GET"):
        vars(request).pop(read, None)


def _takes_json(accept: str) -> bool:
    """As DRF takes it: parameters do not count. Django's own parser fails on some of them."""
    types = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return not types.isdisjoint(_JSON_TYPES)


def _without_body(response: HttpResponse) -> HttpResponse:
    """What GET says of the page, without it: gunicorn would log a body that HEAD must not have."""
    if response.status_code != 304:
        response["Content-Length"] = str(len(response.content))
        response.content = b""
    return response


def _through_layers(ask: Ask) -> HttpResponse:
    if has_lab_token(ask.request):
        # The lab's own reads leave the caches as warm or cold as they were.
        return answered(ask)
    return _LOCAL[settings.LAB.LAB_LOCAL_CACHE](ask, _REDIS[settings.LAB.LAB_REDIS_CACHE])


def _tell_nginx(response: HttpResponse) -> None:
    """protected: the lifetime is the setting's, whatever another layer said. Without, and with the
    article's block, Nginx goes by what the other layers say.
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
