"""The WSGI application."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from django.core.wsgi import get_wsgi_application

from config.http.requests import clean_environ
from config.server import caller

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

_django = get_wsgi_application()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Call Django, and detect the server on the first call."""
    if caller.server() is None:
        caller.detect_wsgi(environ)
    return _django(clean_environ(environ), start_response)
