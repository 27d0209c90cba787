"""Django's own middleware, without a thread for what takes microseconds.

Under ASGI Django runs each of their methods in a thread, since someone's subclass might block.
These only look at headers.
"""

from typing import Any

from django.http import HttpRequest
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


class Security(_InTheLoop, SecurityMiddleware):
    pass


class Common(_InTheLoop, CommonMiddleware):
    pass


class XFrameOptions(_InTheLoop, XFrameOptionsMiddleware):
    pass
