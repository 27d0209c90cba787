"""How Django reads a request's head: a client's Content-Type is no order, and can't be an error."""

from typing import Any

import django
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import HttpRequest
from django.utils.http import parse_header_parameters

# What Python's parser of e-mail headers raises where the parameters make no sense.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError)


class _ReadsContentType(HttpRequest):
    """Django decodes address and form by the charset that the Content-Type names, whichever codec
    that is, and answers 500 where it is none for text or the parameters can't be read. Addresses
    and JSON are UTF-8 here (RFC 8259, 8.1): a charset is not looked at, and parameters that can't
    be read are dropped.
    """

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        said = meta.get("CONTENT_TYPE", "")
        try:
            self.content_type, self.content_params = parse_header_parameters(said)
        except UNREADABLE:
            # DRF reads the header again.
            meta["CONTENT_TYPE"] = said.partition(";")[0].strip()
            self.content_type, self.content_params = meta["CONTENT_TYPE"].lower(), {}


class _WsgiRequest(_ReadsContentType, WSGIRequest):
    pass


class _AsgiRequest(_ReadsContentType, ASGIRequest):
    """Of a project that lies at the root: daphne takes another place for it from a client's header,
    and Django would look for the rest of the path alone.
    """

    def __init__(self, scope: dict[str, Any], body_file: Any) -> None:
        super().__init__({**scope, "root_path": ""}, body_file)


class _WsgiHandler(WSGIHandler):
    request_class = _WsgiRequest


class _AsgiHandler(ASGIHandler):
    request_class = _AsgiRequest


def wsgi_application() -> WSGIHandler:
    """As Django's get_wsgi_application."""
    django.setup(set_prefix=False)
    return _WsgiHandler()


def asgi_application() -> ASGIHandler:
    """As Django's get_asgi_application."""
    django.setup(set_prefix=False)
    return _AsgiHandler()
