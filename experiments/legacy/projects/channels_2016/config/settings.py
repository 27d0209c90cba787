"""Minimal settings, with the channel layer from the environment."""
import os

from django.core.management.utils import get_random_string

# Nothing is signed.
SECRET_KEY = get_random_string(50)
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "config.urls"
INSTALLED_APPS = ["channels"]
MIDDLEWARE = []
TIME_ZONE = "UTC"

# Capacity, expiry and sizes are the layers' own defaults, as in the source.
_LAYERS = {
    "redis": ("asgi_redis.RedisChannelLayer", {"hosts": [os.environ.get("LEGACY_REDIS_URL", "")]}),
    "ipc": ("asgi_ipc.IPCChannelLayer", {"prefix": os.environ.get("LEGACY_IPC_PREFIX", "asgi")}),
}
if os.environ.get("LEGACY_LAYER"):
    _backend, _config = _LAYERS[os.environ["LEGACY_LAYER"]]
    CHANNEL_LAYERS = {"default": {"BACKEND": _backend, "CONFIG": _config, "ROUTING": []}}
