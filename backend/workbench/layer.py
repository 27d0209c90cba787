"""A request across the Channels layer: to the worker's channel, and back by one of its own."""

import asyncio
from typing import Any

from channels import DEFAULT_CHANNEL_LAYER
from channels.exceptions import ChannelFull
from channels.layers import channel_layers, get_channel_layer
from channels_redis.core import RedisChannelLayer
from config.env import is_asgi
from config.http.errors import RETRY_AFTER_SECONDS, ApplicationError
from redis.exceptions import RedisError

# What the worker listens to: manage.py runworker workbench-hello
CHANNEL = "workbench-hello"
# Longer than a worker that is not overloaded ever takes, shorter than any client waits.
TIMEOUT_SECONDS = 5.0

NO_WORKER = "No worker answered within {seconds:g} s. Try again; `lab logs backend-worker`."
FULL = "The workers' queue is full. Try again."
NO_LAYER = "The channel layer's Redis is unavailable. Try again later."


async def ask() -> dict[str, Any]:
    """The worker's answer.

    An ASGI server's loop keeps one layer and its connections. A WSGI server has no loop, and is
    lent one for this call: then the layer is for this call too, and closed at the end, since one
    layer can't receive for two loops at once, which its threads would have.

    Raises:
        ApplicationError: there was none; 503 with Retry-After.
    """
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await (_cross(get_channel_layer()) if is_asgi() else _cross_alone())
    except TimeoutError:
        raise _away("no_worker", NO_WORKER.format(seconds=TIMEOUT_SECONDS)) from None
    except ChannelFull:
        raise _away("overloaded", FULL) from None
    except (RedisError, OSError) as error:
        raise _away("no_layer", NO_LAYER) from error


async def _cross(layer: RedisChannelLayer) -> dict[str, Any]:
    reply = await layer.new_channel()
    await layer.send(CHANNEL, {"type": "hello", "reply": reply})
    answer = await layer.receive(reply)
    return {name: answer[name] for name in ("hello", "worker")}


async def _cross_alone() -> dict[str, Any]:
    layer = channel_layers.make_backend(DEFAULT_CHANNEL_LAYER)
    try:
        return await _cross(layer)
    finally:
        await layer.close_pools()


def _away(code: str, message: str) -> ApplicationError:
    return ApplicationError(code, message, 503, retry_after=RETRY_AFTER_SECONDS)
