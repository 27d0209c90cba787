"""Decorator of the workbench's views: checks the method, returns errors in the API's format."""

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from config.http.errors import EXPECTED_ERRORS, error_response, method_not_allowed
from django.http import HttpRequest, HttpResponse

View = Callable[..., Any]


def endpoint(method: str, view: View) -> View:
    """Wrap `view` to accept one method; GET includes HEAD. A coroutine stays one."""
    allowed = (method, "HEAD") if method == "GET" else (method,)
    return _asynchronous(allowed, view) if iscoroutinefunction(view) else _plain(allowed, view)


def _plain(allowed: tuple[str, ...], view: View) -> View:
    @wraps(view)
    def answer(request: HttpRequest) -> HttpResponse:
        if request.method not in allowed:
            return method_not_allowed(request, allowed)
        try:
            response: HttpResponse = view(request)
        except EXPECTED_ERRORS as error:
            return error_response(error)
        return response

    return answer


def _asynchronous(allowed: tuple[str, ...], view: View) -> View:
    @wraps(view)
    async def answer(request: HttpRequest) -> HttpResponse:
        if request.method not in allowed:
            return method_not_allowed(request, allowed)
        try:
            response: HttpResponse = await view(request)
        except EXPECTED_ERRORS as error:
            return error_response(error)
        return response

    return answer
