"""Which server really calls Django: found in the call, never taken from a setting.

A worker has one caller, so it is looked for once.
"""

import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

# By whether its workers have threads.
_WSGI = {False: "gunicorn-sync", True: "gunicorn-gthread"}

# Whose own name is not the package's.
_PACKAGES = {
    "gunicorn-sync": "gunicorn",
    "gunicorn-gthread": "gunicorn",
    "gunicorn-asgi": "gunicorn",
    "gunicorn-uvicorn": "uvicorn",
}

_found: list[str] = []


def found() -> str | None:
    """The server, by LAB_SERVER's names; None before its first call."""
    return _found[0] if _found else None


def software() -> str | None:
    """Name and version of the program that it is."""
    package = _PACKAGES.get(found() or "", found())
    try:
        return f"{package}/{version(package)}" if package else None
    except PackageNotFoundError:
        return None


def called_by(environ: dict[str, Any]) -> None:
    """By WSGI: what the server says of itself in the environ (PEP 3333)."""
    software = environ.get("SERVER_SOFTWARE", "")
    is_gunicorn = software.startswith("gunicorn/")
    threads = environ["wsgi.multithread"]
    _found.append(_WSGI[threads] if is_gunicorn else f"unknown ({software})")


def called_with(send: Callable[..., Any]) -> None:
    """By ASGI: `send` is the server's own, whatever stands between it and the application."""
    _found.append(_by_asgi(_home(send)))


def _home(send: Callable[..., Any]) -> str:
    """The module that `send` is from: of the function itself, of what a partial holds, or of the
    object that a method written in another language is bound to."""
    send = getattr(send, "func", send)
    module = getattr(send, "__module__", None)
    return module or type(getattr(send, "__self__", send)).__module__


def _by_asgi(module: str) -> str:
    package = module.partition(".")[0]
    # Gunicorn's uvicorn worker runs uvicorn's own code, in a process that gunicorn's master forked.
    held = "gunicorn.arbiter" in sys.modules
    match package:
        case "gunicorn":
            return "gunicorn-asgi"
        case "uvicorn":
            return "gunicorn-uvicorn" if held else "uvicorn"
        case "daphne" | "granian":
            return package
        case _:
            return f"unknown ({module})"
