"""What surrounds each view: its one method, and errors in the one shape."""

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from config.http.errors import FORESEEN, foreseen, method_not_allowed
from django.http import HttpRequest, HttpResponse

View = Callable[..., Any]


def answering(method: str, view: View) -> View:
    """`view` for one method, a coroutine if it is one; HEAD goes with GET."""
    allowed = (method, "HEAD") if method == "GET" else (method,)
    return _asynchronous(allowed, view) if iscoroutinefunction(view) else _plain(allowed, view)


def _plain(allowed: tuple[str, ...], view: View) -> View:
    @wraps(view)
    def answer(request: HttpRequest) -> HttpResponse:
        if request.method not in allowed:
            return method_not_allowed(request, allowed)
        try:
            response: HttpResponse = view(request)
        except FORESEEN as error:
            return foreseen(error)
        return response

    return answer


def _asynchronous(allowed: tuple[str, ...], view: View) -> View:
    @wraps(view)
    async def answer(request: HttpRequest) -> HttpResponse:
        if request.method not in allowed:
            return method_not_allowed(request, allowed)
        try:
            response: HttpResponse = await view(request)
        except FORESEEN as error:
            return foreseen(error)
        return response

    return answer
