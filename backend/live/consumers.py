"""WebSockets that watch a hotel."""

import json
import logging
from contextlib import suppress
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from config.http.errors import DATABASE_AWAY
from django.urls import path, re_path
from hotels.models import Hotel
from observability import metrics
from redis.exceptions import RedisError

from live.push import LAYER, group_of

logger = logging.getLogger(__name__)

# What a client may ask once it listens: its first message may have come before it did.
ASKED = "ready?"

# 4000 to 4999 are an application's own.
NOT_FOUND = 4404
# RFC 6455's successors: "try again later".
TRY_AGAIN = 1013

# What a connection of the layer raises. Not OSError: that is what a server's `send` raises when the
# client has left. https://asgi.readthedocs.io/en/latest/specs/www.html
LAYER_AWAY = (RedisError,)


class HotelWatch(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Says `ready`, and from then on each booking of the hotel that is committed.

    `ready?` is answered by `ready`; what else the client says is not read.
    """

    channel_layer_alias = LAYER
    _accepted = _watching = False
    _hotel: UUID | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Ends in one place, however it ends: a client that drops while it is told something is
        noticed by `send` alone, and `disconnect` is never called.
        """
        try:
            await super().__call__(scope, receive, send)
        except (*LAYER_AWAY, *DATABASE_AWAY) as error:
            logger.warning("A WebSocket was closed: %s", _reason(error))
            await self._ask_to_try_again(receive, send)
        finally:
            await self._leave()

    async def _ask_to_try_again(self, receive: Any, send: Any) -> None:
        """Channels asks Redis before it reads the handshake, which has no code when refused."""
        if not self._accepted:
            await receive()
            await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": TRY_AGAIN})

    async def _leave(self) -> None:
        if self._watching:
            metrics.LIVE_CONNECTIONS.dec()
        if self._hotel is not None:
            with suppress(*LAYER_AWAY):
                await self.channel_layer.group_discard(group_of(self._hotel), self.channel_name)

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Before each message Channels closes old connections to the database, in the one thread
        that has them: a thousand who watch would queue there, for what asks no database.
        """
        if message["type"] == "availability":
            await self.availability(message)
        else:
            await super().dispatch(message)

    async def connect(self) -> None:
        # Accepted first: a handshake that is refused has no close code.
        await self.accept()
        self._accepted = True
        hotel = self.scope["url_route"]["kwargs"]["hotel"]
        if not await database_sync_to_async(Hotel.objects.filter(pk=hotel).exists)():
            await self.close(NOT_FOUND)
            return
        self._hotel = hotel
        await self.channel_layer.group_add(group_of(hotel), self.channel_name)
        self._watching = True
        metrics.LIVE_CONNECTIONS.inc()
        await self._say_ready()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Comes after `connect` has ended, and so after the hotel is watched."""
        if self._watching and text_data == ASKED:
            await self._say_ready()

    async def _say_ready(self) -> None:
        await self.send(json.dumps({"type": "ready", "hotel": str(self._hotel)}))

    async def availability(self, message: dict[str, Any]) -> None:
        """What `push` wrote, once for everyone."""
        await self.send(message["text"])


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


async def no_such_address(_scope: Any, receive: Any, send: Any) -> None:
    """For every other address: as a hotel that is unknown."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": NOT_FOUND})


websocket_urlpatterns = [
    path("ws/hotel/<uuid:hotel>/", HotelWatch.as_asgi()),
    # An address without a route would be an error of ours, with a traceback.
    re_path("", no_such_address),  # type: ignore[arg-type]
]
