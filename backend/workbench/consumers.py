"""The worker of `layer-hello`; `manage.py runworker` runs `application`."""

import os
from typing import Any

from channels.consumer import AsyncConsumer
from channels.exceptions import ChannelFull
from channels.routing import ChannelNameRouter

from workbench.layer import CHANNEL


class HelloWorker(AsyncConsumer):  # type: ignore[misc]
    """Reply on the channel that the request names."""

    async def hello(self, message: dict[str, Any]) -> None:
        reply = {"type": "answer", "hello": "world", "worker": os.getpid()}
        try:
            await self.channel_layer.send(message["reply"], reply)
        except ChannelFull:
            # The client no longer reads there; the next message is already waiting.
            return


application = ChannelNameRouter({CHANNEL: HelloWorker.as_asgi()})
