"""What is served besides plain HTTP: the WebSockets of backend/live."""

from importlib import import_module
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter


def router(http: Any) -> Any:
    """`http` with the consumers that LAB_WEBSOCKETS=on adds, by the connection's protocol."""
    sockets = import_module("live.routing").websocket_urlpatterns
    return ProtocolTypeRouter({"http": http, "websocket": URLRouter(sockets)})
