"""Content-Security-Policy, and Django's middleware without threads under ASGI.

Under ASGI Django runs each method of its middleware in a thread, since a subclass might block.
These methods only handle headers, which takes microseconds.
"""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.deprecation import MiddlewareMixin


class _EventLoopMiddleware(MiddlewareMixin):
    process_response: Any

    async def __acall__(self, request: HttpRequest) -> Any:
        process_request = getattr(self, "process_request", None)
        response = process_request(request) if process_request else None
        if response is None:
            response = await self.get_response(request)  # type: ignore[misc]
        return self.process_response(request, response)


# Swagger's page has its own policy (docs.py). All other responses are not pages: a browser that
# treats one as a page can run, load and frame nothing.
_POLICY = "default-src 'none'; frame-ancestors 'none'"


class ContentSecurityPolicy(_EventLoopMiddleware):
    """Set Content-Security-Policy if the view has not. Django 5.2 has no middleware for it."""

    def process_response(self, _request: HttpRequest, response: HttpResponseBase) -> Any:
        response.headers.setdefault("Content-Security-Policy", _POLICY)
        return response


class Security(_EventLoopMiddleware, SecurityMiddleware):
    pass


class Common(_EventLoopMiddleware, CommonMiddleware):
    pass


class XFrameOptions(_EventLoopMiddleware, XFrameOptionsMiddleware):
    pass
