"""From a committed booking to everyone who watches its hotel."""

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
from hotels.services import BookingMade
from observability import metrics

logger = logging.getLogger(__name__)

LAYER = "live"
# A booking that Redis has not taken until then is told to nobody; a frozen one would collect them.
TIMEOUT_SECONDS = 5.0


def group_of(hotel: UUID) -> str:
    """The group of the layer in which those are who watch `hotel`."""
    return f"hotel.{hotel}"


def push(booking: BookingMade, hotel: UUID, **_signal: Any) -> None:
    """Best effort, and nothing that the booking waits for."""
    sending = _send(group_of(hotel), {"type": "availability", "text": _message(booking, hotel)})
    asyncio.run_coroutine_threadsafe(sending, _loop()).add_done_callback(_count)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The loop that sends, in a thread of its own: one for each process of whichever server.

    A loop lent by async_to_sync would connect to Redis for every booking of a WSGI server.
    """
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="live-push", daemon=True).start()
    return loop


def _message(booking: BookingMade, hotel: UUID) -> str:
    """As the client gets it: written once, not once for each who watches."""
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
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await get_channel_layer(LAYER).group_send(group, message)


def _count(sending: Future[None]) -> None:
    error = sending.exception()
    metrics.LIVE_PUSHES.labels("failed" if error else "sent").inc()
    if error:
        logger.warning("A booking was not pushed: %s", str(error) or type(error).__name__)
