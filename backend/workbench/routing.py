"""What `manage.py runworker` runs."""

from channels.routing import ChannelNameRouter

from workbench.consumers import HelloWorker
from workbench.layer import CHANNEL

application = ChannelNameRouter({CHANNEL: HelloWorker.as_asgi()})
