"""The WSGI application."""

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from config.http.requests import wsgi_application
from config.server import caller

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

_django = wsgi_application()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Django's, which is told who calls."""
    if caller.found() is None:
        caller.called_by(sys._getframe(1).f_globals["__name__"])
    return _django(environ, start_response)
