"""Cache poisoning: the first request for a page fills the cache for everyone. Regardless of its
content, the next client gets the correct page, and the caches store no additional entries.

The tests use the whole stack and a new hotel for each trick, so that its page is not cached yet.
For cache keys in Nginx alone, see test_nginx_cache_pages.py; in the backend alone,
backend/tests/test_cache_keys.py. `basic` stores a page per query, which is one of its faults
(docs/nginx-cache.md) and limited by max_size.
"""

import gzip
from uuid import uuid4

import httpx
import pytest
from redis import Redis

from load_lab.stack.reference import DATABASE
from tests.support.raw_http import head, send_request

ALLOWED_VALUES = {"vary": {"Accept-Encoding"}, "content-type": {"application/json"}}
FORBIDDEN_HEADERS = {"set-cookie", "x-lab-server", "content-range", "location", "x-accel-expires"}


def _headers(*lines):
    return lambda path: head(path, *lines)


def _target(spell):
    return lambda path: head(spell(path))


def _method(method, *lines):
    return lambda path: head(path, *lines, method=method)


TRICKS = {
    "host": _headers("Host: evil.example"),
    "host with a port": _headers("Host: localhost:1"),
    "address with a host": _target(lambda path: f"http://evil.example{path}"),
    "forwarded": _headers(
        "X-Forwarded-Host: evil", "X-Forwarded-Proto: https", "Forwarded: host=e"
    ),
    "forwarded port": _headers("X-Forwarded-Port: 1", "X-Forwarded-For: 127.0.0.1", "X-Real-IP: 1"),
    "scheme": _headers("X-Forwarded-Ssl: on", "X-Forwarded-Protocol: ssl", "X-Url-Scheme: https"),
    "rewritten URL": _headers("X-Original-URL: /lab/settings", "X-Rewrite-URL: /lab/settings"),
    "script": _headers("Script-Name: /x", "SCRIPT_NAME: /y", "X-Script-Name: /z"),
    "method in a header": _headers("X-HTTP-Method-Override: DELETE", "X-Method-Override: PUT"),
    "accept": _headers("Accept: text/html"),
    "accept, indented": _headers("Accept: application/json; indent=4"),
    "no encoding": _headers("Accept-Encoding: identity;q=0, *;q=0"),
    "encodings": _headers("Accept-Encoding: br, zstd, gzip;q=0.001, deflate"),
    "gzip, in capitals": _headers("Accept-Encoding: GZIP"),
    "not gzip": _headers("Accept-Encoding: gzip;q=0, *"),
    "encoding twice": _headers("Accept-Encoding: br", "Accept-Encoding: gzip"),
    "range": _headers("Range: bytes=0-9"),
    "ranges": _headers("Range: bytes=0-1,3-4,-5", 'If-Range: "v1"'),
    "match any": _headers("If-None-Match: *"),
    "match": _headers('If-Match: "x"', 'If-None-Match: W/"x", "y'),
    "since": _headers("If-Modified-Since: Mon, 01 Jan 2035 00:00:00 GMT"),
    "If-Match": _headers('If-Match: "x"'),
    "root path": _headers("Daphne-Root-Path: /api"),
    "unmodified since": _headers("If-Unmodified-Since: Mon, 01 Jan 2001 00:00:00 GMT"),
    "cookie": _headers("Cookie: session=mine; csrftoken=mine"),
    "credentials": _headers("Authorization: Basic bWU6bWU="),
    "wrong token": _headers("X-Lab-Token: guess"),
    "no store": _headers("Cache-Control: no-store, no-cache, max-age=0", "Pragma: no-cache"),
    "backend headers": _headers("X-Accel-Expires: 9999", "X-Accel-Redirect: /lab/settings"),
    "Nginx headers": _headers("X-Lab-Refresh: HIT", "X-Cache-Status: HIT"),
    "request start": _headers("X-Request-Start: 1.000"),
    "hop-by-hop": _headers("Connection: close, Host, X-Lab-Token, Accept-Encoding"),
    "upgrade": _headers("Connection: Upgrade", "Upgrade: websocket"),
    "charset": _headers("Content-Type: text/html; charset=utf-7"),
    "body": lambda path: head(path, "Content-Length: 5") + b"a=b&c",
    "body in chunks": lambda path: (
        head(path, "Transfer-Encoding: chunked") + b"1\r\na\r\n0\r\n\r\n"
    ),
    "HTTP/1.0": lambda path: f"GET {path} HTTP/1.0\r\n\r\n".encode(),
    "HEAD": _method("HEAD"),
    "OPTIONS": _method("OPTIONS"),
    "POST": _method("POST", "Content-Length: 0"),
    "DELETE": _method("DELETE"),
    "format": _target(lambda path: f"{path}?format=json"),
    "another format": _target(lambda path: f"{path}?format=xml"),
    "argument": _target(lambda path: f"{path}?x=%0d%0aSet-Cookie:%20a=b"),
    "empty query": _target(lambda path: f"{path}?"),
    "fragment": _target(lambda path: f"{path}#?format=xml"),
    "slashes": _target(lambda path: f"/{path.replace('/hotel/', '//hotel///')}"),
    "encoded slash": _target(lambda path: path.replace("/hotel/", "/hotel%2f")),
    "parameters": _target(lambda path: f"{path[:-1]};a=b/"),
    "dots": _target(lambda path: f"/x/..{path}"),
    "encoded dots": _target(lambda path: path.replace("/api/", "/api/x/%2e%2e/")),
    "detour": _target(lambda path: f"/lab/settings/../..{path}"),
    "encoded letters": _target(lambda path: path.replace("/api", "/%61p%69")),
    "capitals": _target(lambda path: path[:11] + path[11:].upper()),
    "no slash": _target(lambda path: path[:-1]),
    "line end": _target(lambda path: f"{path}%0a"),
    "space": _target(lambda path: f"{path}%20"),
    "NUL": _target(lambda path: f"{path}%00"),
    "backslash": _target(lambda path: path.replace("/hotel/", "\\hotel\\")),
}
# Allowed responses other than the page, each in the error format.
ERRORS = {
    400: {"bad_request"},
    404: {"not_found"},
    405: {"method_not_allowed"},
    406: {"not_acceptable"},
    412: {"precondition_failed"},
}
ENCODINGS = ([], ["Accept-Encoding: gzip"])
MODES = [(n, r) for n in ("basic", "protected") for r in ("page", "versioned")]


@pytest.fixture(scope="module")
def hotels(stack):
    """Create a hotel with a suite for each trick and cache mode; delete them afterwards."""
    ids = [str(uuid4()) for _ in range(len(MODES) * (len(TRICKS) + 1))]
    # The names end with the ids, so that all pages differ.
    rows = ",".join(f"('{pk}', 'T {pk}', '', 'T', 1, '', 1)" for pk in ids)
    suites = ",".join(f"('{uuid4()}', '{pk}', 1, 2, 1, 1)" for pk in ids)
    stack.sql(
        DATABASE,
        "INSERT INTO hotels_hotel (id, name, address, city, stars, description, version)"
        f" VALUES {rows}",
        "INSERT INTO hotels_suite (id, hotel_id, number, capacity, price, version)"
        f" VALUES {suites}",
    )
    yield iter(ids)
    stack.sql(
        DATABASE,
        "DELETE FROM hotels_suite USING hotels_hotel h WHERE h.id = hotel_id AND h.city = 'T'",
        "DELETE FROM hotels_hotel WHERE city = 'T'",
    )


class Front:
    """The stack in one cache mode, and the entries added to the caches since then."""

    def __init__(self, stack, nginx: str, redis: str, hotels) -> None:
        settings = stack.settings()
        self.port, self.nginx, self.redis = settings.LAB_HTTP_PORT, nginx, redis
        self.pages = 0
        self.token = f"X-Lab-Token: {stack.token()}"
        self._backend, self._hotels = settings.backend_url, hotels
        password = stack._state.secret("redis_password")
        self._redis = Redis(port=settings.LAB_REDIS_PORT, password=password)
        self._folder = stack._state.run / f"cache-{nginx}"
        self._before = self._count_entries()

    def new_page(self) -> str:
        """Return the path of a page that has not been requested yet."""
        self.pages += 1
        return f"/api/hotel/{next(self._hotels)}/"

    def current_page(self, path: str) -> bytes:
        """Return the current page, bypassing every cache."""
        headers = {"X-Lab-Token": self.token.split()[1], "Accept-Encoding": "identity"}
        return httpx.get(f"{self._backend}{path}", headers=headers).content

    def count_additions(self) -> tuple[int, int]:
        """Return the number of pages added to Nginx's cache and of keys added to Redis."""
        files, keys = self._count_entries()
        return files - self._before[0], keys - self._before[1]

    def _count_entries(self) -> tuple[int, int]:
        files = sum(1 for path in self._folder.rglob("*") if path.is_file())
        return files, self._redis.dbsize()


def _declared(modes):
    nginx, redis = modes
    mark = pytest.mark.settings(f"LAB_NGINX_CACHE={nginx}", f"LAB_REDIS_CACHE={redis}")
    return pytest.param(modes, marks=mark, id="-".join(modes))


@pytest.fixture(scope="module", params=map(_declared, MODES))
def front(request, stack, hotels):
    return Front(stack, *request.param, hotels)


def _plain(body, headers):
    return gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body


def _check_client(front, path, body):
    """Check that clients get the page in both encodings and with HEAD, without private data."""
    for lines in ENCODINGS * 2:
        response = send_request(front.port, head(path, *lines))
        assert response.status == 200
        assert _plain(response.body, response.headers) == body
        _check_headers(response.headers)
        assert lines or "content-encoding" not in response.headers
    response = send_request(front.port, head(path, method="HEAD"), has_body=False)
    assert response.status == 200
    _check_headers(response.headers)


def _check_shared_page(front, path):
    """Check that the trick stored no separate page; its response is shared for one second only."""
    for lines in ENCODINGS:
        response = send_request(front.port, head(path, *lines))
        assert response.headers["x-cache-status"] not in ("MISS", "BYPASS")


def _check_headers(headers):
    assert not FORBIDDEN_HEADERS & set(headers)
    for name, allowed in ALLOWED_VALUES.items():
        assert headers.get(name, next(iter(allowed))) in allowed
    assert not {"private", "no-store"} & set(headers.get("cache-control", "").split(", "))


@pytest.mark.parametrize("name", TRICKS)
def test_client_gets_correct_page_after_manipulated_first_request(front, name):
    path = front.new_page()
    body = front.current_page(path)
    first = send_request(front.port, TRICKS[name](path), has_body=name != "HEAD")
    assert first.status in (200, 304, *ERRORS), first.body
    if first.status in ERRORS and name != "HEAD":
        assert first.code in ERRORS[first.status]
    if first.status == 200 and name not in ("HEAD", "OPTIONS"):
        assert _plain(first.body, first.headers) == body
    _check_client(front, path, body)
    # A page fetched for a 412 is not cached, only shared for a second.
    if front.nginx == "protected" and first.status != 412:
        _check_shared_page(front, path)


def test_response_to_lab_token_is_not_cached(front):
    """It names the server, which other clients must not see."""
    path = front.new_page()
    body = front.current_page(path)
    assert "x-lab-server" in send_request(front.port, head(path, front.token)).headers or (
        front.nginx == "protected"
    )
    _check_client(front, path, body)


def test_tricks_add_at_most_one_page_per_encoding(front):
    """With `page`, Redis also stores Django's list of headers and the page for HEAD."""
    files, keys = front.count_additions()
    if front.nginx == "protected":
        assert files <= 2 * front.pages
    assert keys <= (4 if front.redis == "page" else 2) * front.pages
