"""Remove the two client headers that would control how Django reads a request.

Both functions run before Django's own handlers and request classes.
"""

from typing import Any


def clean_environ(environ: dict[str, Any]) -> dict[str, Any]:
    """Remove the parameters of Content-Type from the environ.

    Django would decode the URL and forms with their charset, and return a 500 if that is not a text
    encoding or if the parameters are malformed. URLs and JSON are UTF-8 here (RFC 8259, 8.1).
    """
    environ["CONTENT_TYPE"] = environ.get("CONTENT_TYPE", "").partition(";")[0].strip()
    return environ


def clean_scope(scope: dict[str, Any]) -> dict[str, Any]:
    """Remove the parameters of Content-Type, and root_path, from an ASGI scope of HTTP.

    Daphne takes root_path from a client's header, and Django would then route only the rest of the
    path. This project is always at the root.
    """
    headers = [(name, _media_type(name, value)) for name, value in scope["headers"]]
    return {**scope, "root_path": "", "headers": headers}


def _media_type(name: bytes, value: bytes) -> bytes:
    return value.partition(b";")[0].strip() if name == b"content-type" else value
