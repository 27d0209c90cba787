"""A Content-Security-Policy, and Django's own middleware without a thread for microseconds.

Under ASGI Django runs each method of its middleware in a thread, since someone's subclass might
block. These only look at headers.
"""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.deprecation import MiddlewareMixin


class _InTheLoop(MiddlewareMixin):
    process_response: Any

    async def __acall__(self, request: HttpRequest) -> Any:
        before = getattr(self, "process_request", None)
        response = before(request) if before else None
        if response is None:
            response = await self.get_response(request)  # type: ignore[misc]
        return self.process_response(request, response)


# Nothing here is a page but Swagger's, which says what it needs (docs.py): a browser that takes an
# answer for one finds nothing in it to run, load or frame.
_NOTHING = "default-src 'none'; frame-ancestors 'none'"


class ContentSecurityPolicy(_InTheLoop):
    """Django 5.2 has none of its own."""

    def process_response(self, _request: HttpRequest, response: HttpResponseBase) -> Any:
        response.headers.setdefault("Content-Security-Policy", _NOTHING)
        return response


class Security(_InTheLoop, SecurityMiddleware):
    pass


class Common(_InTheLoop, CommonMiddleware):
    pass


class XFrameOptions(_InTheLoop, XFrameOptionsMiddleware):
    pass
