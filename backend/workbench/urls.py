"""Each route twice: with the views of LAB_VIEWS, and below /async/ always with coroutines."""

from types import ModuleType

from django.conf import settings
from django.urls import URLPattern, path
from lab_settings.kinds import Views

from workbench.endpoint import endpoint
from workbench.views import async_, sync

_METHODS = {
    "cpu": "GET",
    "io_read": "GET",
    "io_create": "POST",
    "sleep": "GET",
    "read_sleep": "GET",
    "row_lock": "GET",
    "random_row_lock": "GET",
    "pg_sleep": "GET",
    "hello": "GET",
    "layer_hello": "GET",
}
VARIANTS: dict[Views, ModuleType] = {Views.SYNC: sync, Views.ASYNC: async_}


def routes(prefix: str, variant: Views) -> list[URLPattern]:
    """Return the routes below `prefix`. Both variants have the same names."""
    return [
        path(
            f"{prefix}workbench/{name.replace('_', '-')}/",
            endpoint(method, getattr(VARIANTS[variant], name)),
            name=f"workbench_{name}",
        )
        for name, method in _METHODS.items()
    ]


urlpatterns = [*routes("async/", Views.ASYNC), *routes("", settings.LAB.LAB_VIEWS)]
