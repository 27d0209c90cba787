"""Detect the server that calls Django. It is read from the call, never from a setting.

A worker has only one server, so it is detected once.
"""

import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

# By whether its workers have threads.
_WSGI = {False: "gunicorn-sync", True: "gunicorn-gthread"}

# Servers whose name is not the package's.
_PACKAGES = {
    "gunicorn-sync": "gunicorn",
    "gunicorn-gthread": "gunicorn",
    "gunicorn-asgi": "gunicorn",
    "gunicorn-uvicorn": "uvicorn",
}

_servers: list[str] = []


def server() -> str | None:
    """Return the server's name as in LAB_SERVER, or None before its first call."""
    return _servers[0] if _servers else None


def software() -> str | None:
    """Return the server as package/version, or None if it is unknown."""
    package = _PACKAGES.get(server() or "", server())
    try:
        return f"{package}/{version(package)}" if package else None
    except PackageNotFoundError:
        return None


def detect_wsgi(environ: dict[str, Any]) -> None:
    """Detect a WSGI server by SERVER_SOFTWARE in the environ (PEP 3333)."""
    software = environ.get("SERVER_SOFTWARE", "")
    is_gunicorn = software.startswith("gunicorn/")
    threads = environ["wsgi.multithread"]
    _servers.append(_WSGI[threads] if is_gunicorn else f"unknown ({software})")


def detect_asgi(send: Callable[..., Any]) -> None:
    """Detect an ASGI server by its `send`, which wrappers around the application pass on."""
    _servers.append(_asgi_server(_module_of(send)))


def _module_of(send: Callable[..., Any]) -> str:
    """Return the module that `send` is from.

    It can be a function, a partial (then its function counts), or a method written in another
    language (then the object that it is bound to counts).
    """
    send = getattr(send, "func", send)
    module = getattr(send, "__module__", None)
    return module or type(getattr(send, "__self__", send)).__module__


def _asgi_server(module: str) -> str:
    package = module.partition(".")[0]
    # Gunicorn's uvicorn worker runs uvicorn's code in a process that gunicorn's master forked.
    is_forked = "gunicorn.arbiter" in sys.modules
    match package:
        case "gunicorn":
            return "gunicorn-asgi"
        case "uvicorn":
            return "gunicorn-uvicorn" if is_forked else "uvicorn"
        case "daphne" | "granian":
            return package
        case _:
            return f"unknown ({module})"
