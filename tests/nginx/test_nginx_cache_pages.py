"""LAB_NGINX_CACHE=protected: cached responses, their keys, and the headers sent to clients."""

import pytest

from tests.support.nginx_front import DETAIL, LIST, Backend, front, raw

SPELLINGS = [
    "/api/hotel/?format=json",
    "/api/hotel/?format=xml&page=2",
    "/api/hotel/?x=" + "y" * 500,
    "//api///hotel//",
    "/api/./hotel/",
    "/api/x/../hotel/",
    "/%61pi/hot%65l/",
]
NOT_PAGES = [
    "/api/hotel/%0A",
    "/api/hotel/%0d%0aX-Evil:%201",
    "/api/hotel",
    DETAIL.rstrip("/"),
    "/api/hotel/0190C6A5-0000-4000-8000-00000000BEEF/",
    "/api/hotel/0190c6a5-0000-4000-8000-00000000beef//x/",
    "/api/hotel/0190c6a50000400080000000000000beef/",
    "/api/hotel/x/",
]


@pytest.fixture
def backend():
    return Backend().set_lifetimes(ttl=60)


@pytest.fixture
def client(tmp_path, backend):
    with front(tmp_path, backend, LAB_NGINX_CACHE="protected") as client:
        client.headers["Accept-Encoding"] = "identity"
        yield client


def _cache(response):
    return response.headers.get("X-Cache-Status")


def _twice(client, method="GET", path=LIST, **headers):
    return [_cache(client.request(method, path, headers=headers)) for _ in range(2)]


@pytest.mark.parametrize("path", [LIST, DETAIL])
def test_second_client_gets_the_cached_page(client, backend, path):
    assert _twice(client, path=path) == ["MISS", "HIT"]
    assert len(backend.requests) == 1


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_a_path_hits_the_same_page(client, backend, spelling):
    client.get(LIST)
    assert "X-Cache-Status: HIT" in raw(client, spelling)
    assert [request[1] for request in backend.requests] == [LIST]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_backend_receives_the_normalized_path(client, backend, spelling):
    assert "X-Cache-Status: MISS" in raw(client, spelling)
    assert backend.requests[0][1] == LIST
    assert _twice(client) == ["HIT", "HIT"]


@pytest.mark.parametrize("path", NOT_PAGES)
def test_unknown_paths_are_never_cached(client, backend, path):
    responses = [raw(client, path) for _ in range(2)]
    assert all(
        "X-Cache-Status: BYPASS" in response or path == "/api/hotel" for response in responses
    )
    assert [request[1] for request in backend.requests] == [path, path]
    assert not any("X-Evil" in request[2] for request in backend.requests)


@pytest.mark.parametrize("status", [201, 204, 301, 302, 400, 404, 410, 429, 500, 503])
def test_only_status_200_is_cached(client, backend, status):
    backend.status = status
    assert "HIT" not in _twice(client)
    backend.status = 200
    assert _twice(client) == ["MISS", "HIT"]


def test_page_without_a_lifetime_for_nginx_is_not_cached(client, backend):
    backend.headers = [("Cache-Control", "max-age=600")]
    assert _twice(client) == ["MISS", "MISS"]


def test_response_with_a_cookie_is_not_cached(client, backend):
    backend.headers.append(("Set-Cookie", "who=me"))
    assert _twice(client) == ["MISS", "MISS"]


def test_vary_does_not_create_separate_pages(client, backend):
    backend.headers.append(("Vary", "User-Agent, Accept-Encoding"))
    client.get(LIST, headers={"User-Agent": "one"})
    assert _cache(client.get(LIST, headers={"User-Agent": "two"})) == "HIT"


def test_client_headers_and_body_do_not_reach_the_backend(client, backend):
    evil = {
        **{"Host": "evil.example", "Accept": "text/html", "Cookie": "a=b", "Range": "bytes=0-3"},
        **{"X-Forwarded-Host": "evil.example", "Authorization": "Basic eA==", "X-Lab-Token": "x"},
        **{
            "X-Request-Start": "1.000",
            "X-Fetch-Start": "1.000 1",
            "If-None-Match": '"v1"',
            "X-HTTP-Method-Override": "PUT",
        },
    }
    client.request("GET", f"{LIST}?format=api", headers=evil, content=b"body")
    headers = {name.lower(): value for name, value in backend.requests[0][2].items()}
    # X-Request-Start is not sent either, as refreshes must not be shed.
    assert set(headers) == {"host", "accept", "x-request-id", "x-fetch-start"}
    assert headers["x-fetch-start"] != "1.000 1"
    assert headers["host"] == "localhost"
    assert headers["accept"] == "application/json"
    assert _twice(client) == ["HIT", "HIT"]


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        ("gzip", "gzip"),
        ("GZIP", "gzip"),
        ("br, gzip;q=0.5, *;q=0", "gzip"),
        ("deflate ,gzip ; q=1.0", "gzip"),
        ("gzip;q=0", None),
        ("gzip;q=0.000", None),
        ("identity", None),
        ("br", None),
        ("x-gzipped", None),
    ],
)
def test_accept_encoding_is_reduced_to_gzip_or_none(client, backend, header, encoding):
    client.get(LIST, headers={"Accept-Encoding": header})
    assert backend.requests[0][2].get("Accept-Encoding") == encoding


def test_each_encoding_has_one_cached_page(client, backend):
    for header in ("gzip", "gzip, br", "br;q=1, gzip;q=0.2", "identity", "", "br"):
        client.get(LIST, headers={"Accept-Encoding": header})
    assert len(backend.requests) == 2


def test_clients_get_no_cache_and_no_headers_for_nginx(client, backend):
    backend.headers.append(("Expires", "Thu, 01 Jan 2037 00:00:00 GMT"))
    for _ in range(2):
        response = client.get(LIST)
        assert response.headers.get_list("Cache-Control") == ["no-cache"]
        assert response.headers["ETag"] == '"v1"'
        assert not {"expires", "x-accel-expires", "x-lab-refresh"} & set(response.headers)


def test_client_with_the_newest_page_gets_304(client, backend):
    for _ in range(2):
        response = client.get(LIST, headers={"If-None-Match": '"v1"'})
        assert (response.status_code, response.content) == (304, b"")
        assert response.headers["ETag"] == '"v1"'
        assert "X-Cache-Status" in response.headers
    assert client.get(LIST, headers={"If-None-Match": '"v0"'}).status_code == 200
    assert len(backend.requests) == 1


def test_range_request_gets_the_whole_page(client, backend):
    for _ in range(2):
        response = client.get(LIST, headers={"Range": "bytes=1-9"})
        assert (response.status_code, response.json()["version"]) == (200, 1)
    assert len(backend.requests) == 1


def test_head_and_get_share_a_cached_page(client, backend):
    head = client.head(LIST)
    assert (head.status_code, _cache(head), head.content) == (200, "MISS", b"")
    assert _cache(client.get(LIST)) == "HIT"
    assert [request[0] for request in backend.requests] == ["GET"]


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "DELETE", "PUT"])
def test_other_methods_are_forwarded_and_never_cached(client, backend, method):
    client.get(LIST)
    assert _twice(client, method) == ["BYPASS", "BYPASS"]
    assert _twice(client) == ["HIT", "HIT"]


def test_client_cannot_set_internal_refresh_headers(client, backend):
    """Only Nginx's internal second listener interprets these headers."""
    backend.headers.append(("X-Lab-Refresh", "HIT"))
    raw(client, LIST, 'If-None-Match: "mine"', "X-Lab-Refresh: HIT", "X-Accel-Expires: 3600")
    assert _twice(client) == ["HIT", "HIT"]
