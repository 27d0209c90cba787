"""What a client says of its request, as far as Django may read it: two headers are no order.

Django's own handlers and request classes serve; these two functions stand before them.
"""

from typing import Any


def read_by_wsgi(environ: dict[str, Any]) -> dict[str, Any]:
    """The environ without the parameters of its Content-Type.

    Django would decode address and form by the charset that they name, whichever codec that is,
    and answer 500 where it is none for text or the parameters can't be read. Addresses and JSON are
    UTF-8 here (RFC 8259, 8.1).
    """
    environ["CONTENT_TYPE"] = environ.get("CONTENT_TYPE", "").partition(";")[0].strip()
    return environ


def read_by_asgi(scope: dict[str, Any]) -> dict[str, Any]:
    """The same of an ASGI scope of HTTP, for a project that lies at the root: daphne takes another
    place for it from a client's header, and Django would look for the rest of the path alone.
    """
    headers = [(name, _media_type(name, value)) for name, value in scope["headers"]]
    return {**scope, "root_path": "", "headers": headers}


def _media_type(name: bytes, value: bytes) -> bytes:
    return value.partition(b";")[0].strip() if name == b"content-type" else value
