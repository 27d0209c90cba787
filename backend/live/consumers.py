"""WebSockets for the bookings of a hotel."""

import json
import logging
from contextlib import suppress
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from config.http.errors import DATABASE_ERRORS
from django.urls import path, re_path
from hotels.models import Hotel
from observability import metrics
from redis.exceptions import RedisError

from live.push import LAYER, group_of

logger = logging.getLogger(__name__)

# Clients can send this once they listen, since the first `ready` may arrive before they do.
READY_QUERY = "ready?"

# Close codes 4000 to 4999 are for applications.
NOT_FOUND = 4404
# In IANA's registry of close codes: "Try Again Later".
TRY_AGAIN = 1013

# Errors of a connection of the layer. Not OSError: a server's `send` raises it after the client has
# disconnected. https://asgi.readthedocs.io/en/latest/specs/www.html
LAYER_ERRORS = (RedisError,)


class HotelWatch(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Send `ready`, and then each committed booking of the hotel.

    The response to `ready?` is `ready`; all other messages of the client are ignored.
    """

    channel_layer_alias = LAYER
    _is_accepted = _is_subscribed = False
    _hotel: UUID | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Clean up in one place, however the connection ends.

        If a client disconnects during a send, only `send` raises an error, and `disconnect` is
        never called.
        """
        try:
            await super().__call__(scope, receive, send)
        except (*LAYER_ERRORS, *DATABASE_ERRORS) as error:
            logger.warning("A WebSocket was closed: %s", _reason(error))
            await self._close_with_try_again(receive, send)
        finally:
            await self._unsubscribe()

    async def _close_with_try_again(self, receive: Any, send: Any) -> None:
        """Close with TRY_AGAIN. A handshake must be accepted first: a rejected one has no close
        code.

        Channels uses Redis before it reads the handshake.
        """
        if not self._is_accepted:
            await receive()
            await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": TRY_AGAIN})

    async def _unsubscribe(self) -> None:
        if self._is_subscribed:
            metrics.LIVE_CONNECTIONS.dec()
        if self._hotel is not None:
            with suppress(*LAYER_ERRORS):
                await self.channel_layer.group_discard(group_of(self._hotel), self.channel_name)

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle `availability` without Channels, which closes old database connections first.

        It does so before each message in a single thread, where a thousand clients would queue
        although this message needs no database.
        """
        if message["type"] == "availability":
            await self.availability(message)
        else:
            await super().dispatch(message)

    async def connect(self) -> None:
        # Accept first: a rejected handshake has no close code.
        await self.accept()
        self._is_accepted = True
        hotel = self.scope["url_route"]["kwargs"]["hotel"]
        if not await database_sync_to_async(Hotel.objects.filter(pk=hotel).exists)():
            await self.close(NOT_FOUND)
            return
        self._hotel = hotel
        await self.channel_layer.group_add(group_of(hotel), self.channel_name)
        self._is_subscribed = True
        metrics.LIVE_CONNECTIONS.inc()
        await self._send_ready()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answer `ready?`. Runs after `connect` has ended, so the hotel is already watched."""
        if self._is_subscribed and text_data == READY_QUERY:
            await self._send_ready()

    async def _send_ready(self) -> None:
        await self.send(json.dumps({"type": "ready", "hotel": str(self._hotel)}))

    async def availability(self, message: dict[str, Any]) -> None:
        """Send the text that `push` serialized once for all clients."""
        await self.send(message["text"])


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


async def close_unknown_path(_scope: Any, receive: Any, send: Any) -> None:
    """Close connections to all other addresses, with the code of an unknown hotel."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": NOT_FOUND})


websocket_urlpatterns = [
    path("ws/hotel/<uuid:hotel>/", HotelWatch.as_asgi()),
    # Without this route, an unknown address would raise an error with a traceback.
    re_path("", close_unknown_path),  # type: ignore[arg-type]
]
