"""A message through the Channels layer to the worker's channel; the reply has its own channel."""

import asyncio
from typing import Any

from channels import DEFAULT_CHANNEL_LAYER
from channels.exceptions import ChannelFull
from channels.layers import channel_layers, get_channel_layer
from channels_redis.core import RedisChannelLayer
from config.env import is_asgi
from config.http.errors import RETRY_AFTER_SECONDS, ApplicationError
from redis.exceptions import RedisError

# The worker's channel: manage.py runworker workbench-hello
CHANNEL = "workbench-hello"
# Longer than a worker takes unless it is overloaded, shorter than any client's timeout.
TIMEOUT_SECONDS = 5.0

NO_WORKER = "Timed out after {seconds:g} s waiting for a worker. See `lab logs backend-worker`."
FULL = "The workers' queue is full. Try again later."
NO_LAYER = "The channel layer's Redis is unavailable. Try again later."


async def request_hello() -> dict[str, Any]:
    """Return the worker's reply.

    The event loop of an ASGI server keeps one layer and its connections. A WSGI server has no event
    loop and gets a temporary one for this call. Then the layer is also created for this call and
    closed at the end: one layer can't receive for two event loops at once, which the server's
    threads would have.

    Raises:
        ApplicationError: no reply; 503 with Retry-After.
    """
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await (_exchange(get_channel_layer()) if is_asgi() else _exchange_on_own_layer())
    except TimeoutError:
        raise _unavailable("no_worker", NO_WORKER.format(seconds=TIMEOUT_SECONDS)) from None
    except ChannelFull:
        raise _unavailable("overloaded", FULL) from None
    except (RedisError, OSError) as error:
        raise _unavailable("no_layer", NO_LAYER) from error


async def _exchange(layer: RedisChannelLayer) -> dict[str, Any]:
    reply = await layer.new_channel()
    await layer.send(CHANNEL, {"type": "hello", "reply": reply})
    message = await layer.receive(reply)
    return {name: message[name] for name in ("hello", "worker")}


async def _exchange_on_own_layer() -> dict[str, Any]:
    layer = channel_layers.make_backend(DEFAULT_CHANNEL_LAYER)
    try:
        return await _exchange(layer)
    finally:
        await layer.close_pools()


def _unavailable(code: str, message: str) -> ApplicationError:
    return ApplicationError(code, message, 503, retry_after=RETRY_AFTER_SECONDS)
