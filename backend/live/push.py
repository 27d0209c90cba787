"""From a committed booking to everyone who watches its hotel."""

import asyncio
import json
import logging
import time
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from hotels.services import BookingMade
from ops import metrics

logger = logging.getLogger(__name__)

LAYER = "live"
# What a booking may wait for Redis, which it does not need: as long as a cache may take.
BOUND_SECONDS = 0.08


def group_of(hotel: UUID) -> str:
    """The group of the layer in which those are who watch `hotel`."""
    return f"hotel.{hotel}"


def push(booking: BookingMade, hotel: UUID, **_signal: Any) -> None:
    """Best effort: a Redis that is away costs the booking BOUND_SECONDS and is counted."""
    text = _message(booking, hotel)
    try:
        async_to_sync(_send)(group_of(hotel), {"type": "availability", "text": text})
    except Exception as error:
        metrics.LIVE_PUSHES.labels("failed").inc()
        logger.warning("A booking was not pushed: %s", error or type(error).__name__)
    else:
        metrics.LIVE_PUSHES.labels("sent").inc()


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
    async with asyncio.timeout(BOUND_SECONDS):
        await get_channel_layer(LAYER).group_send(group, message)
