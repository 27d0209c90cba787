"""Requests with a malformed Content-Type are still handled, by WSGI and by ASGI."""

import io
from functools import cache
from wsgiref.util import setup_testing_defaults

import pytest
from config.http.requests import clean_environ, clean_scope
from django.core.handlers.asgi import ASGIRequest
from django.core.wsgi import get_wsgi_application
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

# Created once, because it loads the middleware.
_application = cache(get_wsgi_application)
MALFORMED = [
    "application/json; charset=rot13",
    "application/json; charset=undefined",
    "application/json; charset*=utf-8''%00",
    "application/json; x*=none'en'y",
]


def _get_by_wsgi(content_type, method="GET", path="/healthz", body=b""):
    """Return status and body."""
    environ = {
        "CONTENT_TYPE": content_type,
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": "a=%41%ff",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    setup_testing_defaults(environ)
    environ["HTTP_HOST"] = "localhost"
    statuses = []
    answer = _application()(
        clean_environ(environ), lambda status, _headers: statuses.append(int(status[:3]))
    )
    try:
        return statuses[0], b"".join(answer)
    finally:
        answer.close()


# The end of a request closes its connections, as in a worker.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("content_type", MALFORMED)
def test_malformed_content_type_changes_no_wsgi_response(hotel, content_type):
    plain = _get_by_wsgi("", path="/api/hotel/")
    assert plain[0] == 200
    assert _get_by_wsgi(content_type, path="/api/hotel/") == plain


@pytest.mark.parametrize("content_type", MALFORMED)
def test_asgi_reads_malformed_content_type(content_type):
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/healthz",
        "query_string": b"a=%41",
        "headers": [(b"content-type", content_type.encode())],
    }
    request = ASGIRequest(clean_scope(scope), io.BytesIO())
    assert (request.content_type, request.GET["a"]) == ("application/json", "A")


def test_asgi_root_path_is_ignored():
    """Daphne passes on `Daphne-Root-Path: /x`, which would turn /x/healthz into /healthz."""
    scope = {"type": "http", "method": "GET", "path": "/x/healthz", "root_path": "/x"}
    complete_scope = {**scope, "query_string": b"", "headers": []}
    request = ASGIRequest(clean_scope(complete_scope), io.BytesIO())
    assert (request.path, request.path_info) == ("/x/healthz", "/x/healthz")


@pytest.mark.django_db(transaction=True)
# Characters that a header may contain.
@given(st.text(st.characters(min_codepoint=32, max_codepoint=255)))
def test_content_type_parameters_cause_no_server_error(parameters):
    """The booking is read as JSON, or rejected because of the text before the semicolon."""
    status, _ = _get_by_wsgi(f"application/json;{parameters}", "POST", "/api/booking/", b"{}")
    assert status == 400
    assert _get_by_wsgi(parameters)[0] == 200


@pytest.mark.django_db
def test_charset_is_ignored(booking_data):
    """JSON is UTF-8; a body in another encoding is rejected as unreadable."""
    content_type = "application/json; charset=utf-16"
    answer = APIClient().generic(
        "POST", "/api/booking/", "{}".encode("utf-16"), content_type=content_type
    )
    assert answer.status_code == 400
