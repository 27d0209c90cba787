"""What is served besides plain HTTP: the WebSockets of backend/live."""

from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from live.routing import websocket_urlpatterns


def router(http: Any) -> Any:
    """`http` with the consumers that LAB_WEBSOCKETS=on adds, by the connection's protocol."""
    return ProtocolTypeRouter({"http": http, "websocket": URLRouter(websocket_urlpatterns)})
