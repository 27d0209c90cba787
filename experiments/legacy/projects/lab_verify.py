"""Versions and server of a running stack, verified by the lab before it measures. Python 3.6 and up."""
import platform
import sys

import django

SERVERS = ("gunicorn", "uvicorn", "daphne", "channels")


def server():
    """Return the innermost known server among the calling frames."""
    frame = sys._getframe(1)
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in SERVERS:
            return package
        frame = frame.f_back
    return None


def versions():
    import asgiref

    return {
        "python": platform.python_version(),
        "django": django.get_version(),
        "asgiref": asgiref.__version__,
    }
