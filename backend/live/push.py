"""Push a committed booking to all clients that watch its hotel."""

import asyncio
import json
import logging
import time
from concurrent.futures import Future
from functools import cache
from threading import Thread
from typing import Any
from uuid import UUID

from channels.layers import get_channel_layer
from hotels.services import CreatedBooking
from observability import metrics
from redis.exceptions import ConnectionError as RedisConnectionError

logger = logging.getLogger(__name__)

LAYER = "live"
# A booking that Redis has not accepted by then is not pushed; a hanging Redis would make them pile
# up.
TIMEOUT_SECONDS = 5.0


def group_of(hotel: UUID) -> str:
    """Return the layer's group of the clients that watch `hotel`."""
    return f"hotel.{hotel}"


def push(booking: CreatedBooking, hotel: UUID, **_signal: Any) -> None:
    """Push the booking: best effort, and the booking does not wait for it."""
    coroutine = _send(group_of(hotel), {"type": "availability", "text": _message(booking, hotel)})
    asyncio.run_coroutine_threadsafe(coroutine, _loop()).add_done_callback(_count)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop that sends. Each process, of any server, has one in a separate thread.

    With async_to_sync, a WSGI server would connect to Redis for every booking.
    """
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="live-push", daemon=True).start()
    return loop


def _message(booking: CreatedBooking, hotel: UUID) -> str:
    """Return the message as JSON: serialized once, not once per client."""
    return json.dumps(
        {
            "type": "availability",
            "hotel": str(hotel),
            "suite": str(booking.suite),
            "booking": str(booking.id),
            "check_in": str(booking.check_in),
            "check_out": str(booking.check_out),
            "committed_at": time.time(),
        }
    )


async def _send(group: str, message: dict[str, Any]) -> None:
    layer = get_channel_layer(LAYER)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        try:
            await layer.group_send(group, message)
        except RedisConnectionError:
            # Redis closed the connection since the last push, as a restart does. The client now
            # opens a new one.
            await layer.group_send(group, message)


def _count(future: Future[None]) -> None:
    error = future.exception()
    metrics.LIVE_PUSHES.labels("failed" if error else "sent").inc()
    if error:
        logger.warning("Pushing a booking failed: %s", str(error) or type(error).__name__)
