"""The ASGI application: Django for HTTP, and Channels for WebSockets with LAB_WEBSOCKETS=on."""

import ctypes
import os
import signal
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Set before the settings are read: under ASGI a persistent connection to Postgres would leak.
os.environ["BACKEND_INTERFACE"] = "asgi"

from django.core.asgi import get_asgi_application

from config.http.requests import clean_scope
from config.server import caller

# https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html
_PR_SET_PDEATHSIG = 1


class _Application:
    """Pass calls on to Django or to the router, and detect the server on the first call."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if caller.server() is None:
            caller.detect_asgi(send)
        await self._inner(scope, receive, send)


def _django() -> Any:
    """Return Django's ASGI application behind `clean_scope`."""
    inner = get_asgi_application()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await inner(clean_scope(scope), receive, send)

    return application


def _http_only(http: Any) -> Any:
    """Reject WebSockets with 403. Django would raise an error for them."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            await http(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.close"})

    return application


def _terminate_with_master() -> None:
    """Terminate this worker when its server's master dies.

    Workers of a killed server would keep its socket open, and a new server could not listen.
    Gunicorn's workers terminate by themselves; those of the other servers do not.
    """
    if os.environ.get("BACKEND_MASTER") == str(os.getppid()):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _build() -> _Application:
    http = _django()
    from django.conf import settings

    if settings.LAB.LAB_WEBSOCKETS == "off":
        return _Application(_http_only(http))
    from channels.routing import ProtocolTypeRouter, URLRouter
    from live.consumers import websocket_urlpatterns

    websockets = URLRouter(websocket_urlpatterns)
    return _Application(ProtocolTypeRouter({"http": http, "websocket": websockets}))


_terminate_with_master()
application = _build()
