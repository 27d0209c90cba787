"""Malformed requests are rejected in the error format, by Nginx or by the server, and the next
request is answered normally.
"""

import gzip
import json
import os

import pytest
from lab_settings.kinds import Server

from tests.support.raw_http import Client, head, post, send_request

BOOKING, LIST = "/api/booking/", "/api/hotel/"
DATA = {
    "suite": "6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10",
    "check_in": "2031-05-01",
    "check_out": "2031-05-04",
    "customers": ["6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b11"],
}
GOOD = json.dumps(DATA).encode()
# `make test-input` runs with every server.
SERVERS = list(Server) if os.environ.get("BAD_INPUT_SERVERS") == "all" else [Server.GUNICORN_SYNC]


def _declared(server):
    return pytest.param(server, marks=pytest.mark.settings(f"LAB_SERVER={server}"))


@pytest.fixture(scope="module", params=map(_declared, SERVERS))
def server(stack, request):
    return request.param


@pytest.fixture
def port(stack, server):
    return stack.settings().LAB_HTTP_PORT


def _body(**changes):
    return json.dumps({**DATA, **changes}).encode()


BODIES = {
    "empty": b"",
    "truncated": GOOD[:-20],
    "two documents": GOOD + GOOD,
    "comment": b"/* */" + GOOD,
    "UTF-8 with BOM": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "UTF-16 without BOM": GOOD.decode().encode("utf-16-le"),
    "UTF-32": GOOD.decode().encode("utf-32"),
    "Latin-1": _body(suite="").replace(b'""', b'"\xe9\xe8"'),
    "half a character": GOOD.replace(b"6f0b", b"\xc3"),
    "overlong encoding of /": GOOD.replace(b"6f0b", b"\xc0\xaf"),
    "NUL": GOOD.replace(b"6f0b", b"\x00"),
    "NUL, escaped": _body(suite="\x00"),
    "NUL in a date": _body(check_in="2031-05-01\x00"),
    "half a surrogate": _body(suite="\ud800"),
    "half a surrogate in a list": _body(customers=["\udfff"]),
    "half a surrogate in a name": _body(**{"\ud800": 1, "suite": 1}),
    "gzip": gzip.compress(GOOD),
    "deep list": b"[" * 60_000,
    "deep list, closed": b"[" * 30_000 + b"]" * 30_000,
    "deep object": b'{"suite":' * 6_000,
    "deep field": GOOD.replace(b'["', b"[" * 20_000 + b'["').replace(b'"]', b'"]' + b"]" * 20_000),
    "huge number": _body(suite=0).replace(b" 0", b"9" * 50_000),
    "huge exponent": _body(suite=0).replace(b" 0", b"1e99999"),
    "NaN": _body(suite=float("nan")),
    "Infinity": _body(check_in=float("inf")),
    "true": b"true",
    "number": b"5",
    "list of bookings": b"[" + GOOD + b"]",
    "no date": _body(check_in=None),
    "date as number": _body(check_in=20310501),
    "date as list": _body(check_in=["2031-05-01"]),
    "date and time": _body(check_in="2031-05-01T00:00:00Z"),
    "year 10000": _body(check_out="10000-01-01"),
    "year 0": _body(check_in="0000-01-01"),
    "year -1": _body(check_in="-0001-01-01"),
    "infinity": _body(check_out="infinity"),
    "today": _body(check_in="today"),
    "other digits": _body(check_in="２０３１-05-01"),
    "a week's day": _body(check_in="2031-W18-4"),
    "a short date": _body(check_in="2031-5-1"),
    "an id in braces": _body(suite="{6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10}"),
    "an id in other digits": _body(suite="６f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10"),
    "an id without dashes": _body(suite="6f0b0a527a0e4c0f9f435f1f6a3a2b10"),
    "newline after id": _body(suite=DATA["suite"] + "\n"),
    "newline after date": _body(check_in="2031-05-01\n"),
    "reversed dates": _body(check_in="9999-12-31", check_out="0001-01-01"),
    "customers as text": _body(customers="6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b11"),
    "customers as object": _body(customers={"0": DATA["suite"]}),
    "customers in customers": _body(customers=[[DATA["suite"]]]),
    "too many customers": _body(customers=[DATA["suite"]] * 101),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_invalid_booking_body_returns_400(port, body):
    response = send_request(port, post(BOOKING, body))
    assert (response.status, response.code) in {(400, "invalid"), (400, "parse_error")}


# Only the media type is read. JSON is always UTF-8, so parameters are ignored.
CONTENT_TYPES = {
    "charset": "application/json; charset=utf-16",
    "unknown codec": "application/json; charset=none",
    "bytes codec": "application/json; charset=rot13",
    "a codec that always fails": "application/json; charset=undefined",
    "NUL": "application/json; charset*=utf-8''%00",
    "encoding of a parameter": "application/json; x*=none'en'y",
    "parts of a parameter": "application/json; x*0*=none'en'y; x*1*=%ff; x*=1",
    "quote": 'application/json; x="',
    "semicolons": "application/json;;;;=;",
    "capitals": "APPLICATION/JSON",
}


@pytest.mark.parametrize("content_type", CONTENT_TYPES.values(), ids=CONTENT_TYPES)
def test_content_type_parameters_are_ignored(port, content_type):
    """The booking is parsed and its suite not found; the list, without a body, is returned."""
    assert send_request(port, post(BOOKING, GOOD, content_type=content_type)).status == 404
    response = send_request(port, head(f"{LIST}?a=%41%ff", f"Content-Type: {content_type}"))
    assert (response.status, len(response.json)) == (200, 4)


OTHER_TYPES = ["", "text/plain", "application/xml", "application/", "/", "a=b", "json", "x" * 4000]


@pytest.mark.parametrize("content_type", OTHER_TYPES, ids=[name[:20] for name in OTHER_TYPES])
def test_unsupported_media_type_returns_415(port, content_type):
    response = send_request(port, post(BOOKING, GOOD, content_type=content_type))
    assert (response.status, response.code) == (415, "unsupported_media_type")


def _framed(body, *headers):
    return head(BOOKING, "Content-Type: application/json", *headers, method="POST") + body


CHUNKED = "Transfer-Encoding: chunked"
LENGTH = f"Content-Length: {len(GOOD)}"
CHUNK = b"%x\r\n%s\r\n" % (len(GOOD), GOOD)
# Each message with its expected status and error code.
MESSAGES = {
    "chunks": (_framed(CHUNK + b"0\r\n\r\n", CHUNKED), 404, "not_found"),
    "chunks over the limit": (
        _framed((b"8000\r\n" + b" " * 0x8000 + b"\r\n") * 3 + b"0\r\n\r\n", CHUNKED),
        413,
        "too_large",
    ),
    "invalid chunk size": (_framed(b"zz\r\n", CHUNKED), 400, "bad_request"),
    "length over the limit": (post(BOOKING, b" " * 70_000), 413, "too_large"),
    "length over the limit, no body yet": (
        _framed(b"", "Content-Length: 70000"),
        413,
        "too_large",
    ),
    "invalid length": (_framed(GOOD, "Content-Length: x"), 400, "bad_request"),
    "a negative length": (_framed(GOOD, "Content-Length: -1"), 400, "bad_request"),
    "huge length": (_framed(GOOD, f"Content-Length: {'9' * 30}"), 400, "bad_request"),
    "two lengths": (_framed(GOOD, LENGTH, "Content-Length: 5"), 400, "bad_request"),
    "length and chunks": (_framed(CHUNK, LENGTH, CHUNKED), 400, "bad_request"),
    "another coding": (_framed(GOOD, "Transfer-Encoding: gzip"), 501, "not_implemented"),
    "two types": (
        _framed(GOOD, LENGTH, "Content-Type: text/plain"),
        (404, 415),
        ("not_found", "unsupported_media_type"),
    ),
    "two hosts": (head(LIST, "Host: a", "Host: b"), 400, "bad_request"),
    "invalid host": (head(LIST, "Host: a b"), 400, "bad_request"),
    "a host with a slash": (head(LIST, "Host: a/b"), 400, "bad_request"),
    "invalid idempotency key": (post(BOOKING, GOOD, "Idempotency-Key: a b"), 400, "invalid"),
    "X-Forwarded-Ssl": (head("/none", "X-Forwarded-Ssl: on"), 404, "not_found"),
    "X-Forwarded-Protocol": (head("/none", "X-Forwarded-Protocol: ssl"), 404, "not_found"),
    "a large header": (head(LIST, f"X: {'y' * 9_000}"), 431, "headers_too_large"),
    "many large headers": (head(LIST, *[f"X: {'y' * 8_000}"] * 6), 431, "headers_too_large"),
    "a long address": (head(f"{LIST}none/?{'x' * 8_000}"), 404, "not_found"),
    "a longer address": (head(f"{LIST}?{'x' * 9_000}"), 414, "address_too_long"),
    "bytes in the address": (head(f"{LIST}?\xe9"), 400, "bad_request"),
    "arguments without end": (head(f"{LIST}?{'&a' * 1_500}"), 400, "bad_request"),
    "unknown method": (head(LIST, method="FETCH"), 405, "method_not_allowed"),
    "short method": (head(LIST, method="A"), 405, "method_not_allowed"),
    "TRACE": (head(LIST, method="TRACE"), 405, "method_not_allowed"),
    "DELETE": (head(LIST, method="DELETE"), 405, "method_not_allowed"),
    "invalid Accept": (head(LIST, "Accept: ;;/,"), 406, "not_acceptable"),
    "a path with a line end": (head("/api/hotel/%0a/"), 404, "not_found"),
    "invalid UTF-8 in path": (head("/api/hotel/%ff%fe/"), 404, "not_found"),
    "path traversal": (head("/api/hotel/..%2f..%2flab/settings"), 404, "not_found"),
    "path traversal, static files": (head("/static/a/..%2f..%2fmanage.py"), 400, "bad_request"),
    "lowercase method": (head(LIST, method="get"), 400, "bad_request"),
    "NUL": (head("/api/hotel/%00/"), 400, "bad_request"),
    "above the root": (head("/../.."), 400, "bad_request"),
    "unknown HTTP version": (head(LIST).replace(b"1.1", b"7.1", 1), 505, "not_implemented"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_malformed_message_is_rejected_in_error_format(port, name):
    request, status, code = MESSAGES[name]
    response = send_request(port, request)
    statuses, codes = (status, code) if isinstance(status, tuple) else ((status,), (code,))
    assert (response.status, response.code) in set(zip(statuses, codes, strict=True))
    assert b"nginx" not in response.body
    assert response.status != 405 or "allow" in response.headers


MANY = [f"X-{number}: y" for number in range(200)]
# Nginx accepts these messages; the server's parser decides. WSGI servers return this status in the
# error format, ASGI servers one of these statuses.
PARSED = {
    "a control character": (head(LIST, "X: a\x01b"), 400, {200, 400}),
    "control character in key": (post(BOOKING, GOOD, "Idempotency-Key: a\x01b"), 400, {400}),
    "200 headers": (head(LIST, *MANY), 431, {200, 431}),
}


@pytest.mark.parametrize("name", PARSED)
def test_server_parser_handles_messages_accepted_by_nginx(port, server, name):
    request, status, others = PARSED[name]
    response = send_request(port, request)
    if server.is_asgi:
        assert response.status in others
    else:
        assert (response.status, response.code) == (status, "bad_request")


@pytest.mark.parametrize("version", ["%0d%0aX:%20y", "%00", "1.0.0", "é", "../x"])
def test_schema_ignores_requested_version(port, version):
    plain = send_request(port, head("/api/schema/?format=json"))
    target = f"/api/schema/?format=json&version={version.replace('é', '%C3%A9')}"
    other = send_request(port, head(target))
    assert (plain.status, other.status) == (200, 200)
    assert other.json["paths"] == plain.json["paths"]
    assert "x" not in other.headers


def test_request_smuggled_in_body_is_not_answered(port):
    """A server that reads another length than Nginx would send its response to the next client."""
    inner = head("/lab/settings")
    with Client(port) as client:
        client.send(post(BOOKING, inner) + head(LIST))
        assert client.answer().status == 400
        assert client.answer().status == 200
        client.send(_framed(b"0\r\n\r\n" + inner, "Content-Length: 5", CHUNKED))
        assert client.answer().status == 400
        with pytest.raises(ConnectionError):
            client.answer()
