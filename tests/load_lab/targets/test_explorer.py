"""The explorer against a real server: what it finds, leaves out, and never sends."""

import json
import socketserver
import threading
from contextlib import contextmanager
from itertools import pairwise

import httpx
import pytest

from load_lab.errors import LabError, UsageError
from load_lab.targets.sources import exchange
from load_lab.targets.sources.described import divided
from load_lab.targets.sources.explorer import explore
from load_lab.targets.sources.openapi import read_document
from load_lab.targets.sources.safety import Safety
from tests.support.ports import free_port
from tests.support.small_api import DOCUMENT, HOTELS, PAGE, TOKEN, SmallApi, serve_api

_OK = b"HTTP/1.1 200 OK\r\n"
_NO_CONTENT = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"

OPERATIONS = read_document(json.dumps(DOCUMENT), "document").operations


@pytest.fixture
def api():
    with serve_api(SmallApi()) as api:
        yield api


def _explore(url, operations=OPERATIONS, headers=None, **options):
    with httpx.Client(base_url=url, headers=headers) as client:
        found, left_out = divided(explore(operations, client, **options))
    paths = {o.name: [request.path for request in o.requests] for o in found}
    return paths, {each.name: (each.status, each.reason) for each in left_out}


def _operations(paths, **document):
    return read_document(
        json.dumps({"openapi": "3.1.0", "paths": paths, **document}), "document"
    ).operations


def test_values_come_from_lists_links_document_and_fields(api):
    paths, _ = _explore(api.url, most=2)

    assert {name: len(found) for name, found in paths.items()} == {
        "GET /api/start/": 1,
        "GET /api/hotels/": 1,
        "GET /api/hotels/{id}/": 2,
        "GET /api/hotels/{hotel_id}/suites/": 2,
        "GET /api/hotels/{hotel_id}/suites/{number}/": 2,
        "GET /api/posts/{slug}/": 2,
        "GET /api/cities/{city}/": 2,
        "GET /api/guests/{login}/": 1,
        "GET /api/guests/me/": 1,
        "GET /api/books/": 1,
        "GET /api/books/{book_isbn}/": 1,
        # The other kind is answered with another status.
        "GET /api/reports/{kind}/": 1,
        "GET /api/search/": 2,
        "GET /api/empty/": 1,
    }
    assert paths["GET /api/guests/{login}/"] == ["/api/guests/ada/"]
    assert all(path.startswith("/api/cities/City%2F") for path in paths["GET /api/cities/{city}/"])
    assert all(path.startswith("/api/search/?city=City%2F") for path in paths["GET /api/search/"])


def test_what_is_left_out_has_its_reason(api):
    _, left_out = _explore(api.url)

    lost = [path for path in api.paths if path.startswith("GET /api/lost/")]
    assert left_out.pop("GET /api/lost/{id}/") == (404, f"{lost[0][4:]} answered 404")
    # Three values from each of two places: the fields, and what other operations have.
    assert len(lost) == 6
    assert left_out == {
        "POST /api/hotels/": (None, "not safe: POST"),
        "DELETE /api/hotels/{id}/": (None, "not safe: DELETE"),
        "GET /api/hotels/{id}/delete/": (None, "not safe: stem `delete`"),
        "GET /api/session/": (None, "not safe: stem `logout`"),
        "GET /api/empty/{uuid}/": (None, "no value found for {uuid}: the list /api/empty is empty"),
        "GET /api/broken/": (500, "/api/broken/ answered 500"),
        "GET /api/secret/": (403, "/api/secret/ answered 403"),
        "GET /api/old/": (301, "/api/old/ redirects to /new/"),
    }


def test_addresses_are_spread_evenly_over_the_list(api):
    paths, _ = _explore(api.url, most=10)

    ids = sorted(int(path.split("/")[3]) for path in paths["GET /api/hotels/{id}/"])
    gaps = [after - before for before, after in pairwise(ids)]
    assert len(set(ids)) == 10
    assert max(gaps) <= 2 * PAGE / 10
    assert ids[0] < HOTELS[0]["id"] + 2 * PAGE / 10


def test_seed_decides_which_addresses_are_found(api):
    first, again, other = (_explore(api.url, most=5, seed=seed)[0] for seed in (1, 1, 2))

    assert first == again
    assert first["GET /api/hotels/{id}/"] != other["GET /api/hotels/{id}/"]


def test_each_address_is_sent_once_and_only_those_in_the_document(api):
    paths, _ = _explore(api.url)

    assert len(set(api.paths)) == len(api.paths)
    assert {f"GET {path}" for found in paths.values() for path in found} <= set(api.paths)
    assert [path for path in api.paths if not path.startswith("GET ")] == []
    # Values in answers that would make other addresses of /api/guests/{login}/: logout, and "..".
    assert not {"GET /api/guests/logout/", "GET /api/", "GET /api/guests/../"} & set(api.paths)
    assert api.cookies == []


def test_request_is_sent_again_if_the_connection_was_closed(api):
    expected = _explore(api.url, most=2)
    api.closes_first = True
    api.paths.clear()

    assert _explore(api.url, most=2) == expected


def test_other_hosts_receive_nothing(api):
    with serve_api(SmallApi()) as other:
        api.elsewhere = other.url
        _explore(api.url)

    assert other.paths == []
    assert "GET /api/posts/other/" not in api.paths


def test_operation_that_writes_is_sent_if_it_is_named(api):
    _, left_out = _explore(api.url, safety=Safety(named=["userLogout"]))

    assert left_out["GET /api/session/"] == (404, "/api/session/ answered 404")
    assert left_out["GET /api/hotels/{id}/delete/"][1] == "not safe: stem `delete`"


def test_target_below_a_path(api):
    operations = _operations({"/start/": {"get": {}}, "/posts/{slug}/": {"get": {}}})

    paths, _ = _explore(f"{api.url}/api", operations)

    assert sorted(paths["GET /posts/{slug}/"]) == ["/posts/a-b/", "/posts/c-d/"]


def test_head_operation(api):
    paths, _ = _explore(api.url, _operations({"/api/hotels/": {"head": {}}}))

    assert paths == {"HEAD /api/hotels/": ["/api/hotels/"]}


def test_missing_header_is_named(api):
    api.needs_token = True

    with pytest.raises(UsageError, match=r"401 .* Authorization: Token … or X-Api-Key: …"):
        _explore(api.url)
    with pytest.raises(UsageError, match="check that its value is valid"):
        _explore(api.url, headers={"Authorization": "Token expired"})
    assert "GET /api/hotels/" in _explore(api.url, headers={"Authorization": TOKEN})[0]


def test_document_of_another_target(api):
    with pytest.raises(LabError, match=r"no operation with 2xx \(404: 1\), such as GET /v2/x: "):
        _explore(api.url, _operations({"/v2/x": {"get": {}}}))


def test_unreachable_target():
    with pytest.raises(LabError, match="accepts no connection for GET /api/start/"):
        _explore(f"http://127.0.0.1:{free_port()}")


@contextmanager
def _raw_server(answer, then=b""):
    """Send `answer` to each request, and `then` until the client is gone. /good is answered. Yield
    the address and the paths that arrived.
    """

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            paths.append(self.request.recv(65_536).split()[1])
            is_good = paths[-1] == b"/good"
            self.request.sendall(_NO_CONTENT if is_good else answer)
            while then and not is_good and not stop.wait(0.01):
                self.request.sendall(then)

    stop, paths = threading.Event(), []
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.handle_error = lambda *_: None
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", paths
        stop.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("answer", "then", "reason"),
    [
        (b"", b"", "no valid answer (RemoteProtocolError"),
        (b"SSH-2.0-OpenSSH\r\n", b"", "no valid answer (RemoteProtocolError"),
        (_OK + b"Content-Encoding: gzip\r\n\r\nabc", b"", "no valid answer (DecodingError"),
        (_OK + b"\r\n", b"data: 1\n\n", "no complete answer within"),
    ],
    ids=["closed", "not HTTP", "not gzip", "endless"],
)
def test_invalid_answer_is_left_out(answer, then, reason, monkeypatch):
    monkeypatch.setattr(exchange, "_TIMEOUT", 0.3)
    bad = {"parameters": [{"name": "n", "in": "path", "schema": {"enum": [1, 2]}}], "get": {}}
    operations = _operations({"/bad/{n}": bad, "/good": {"get": {}}})

    with _raw_server(answer, then) as (url, arrived):
        paths, left_out = _explore(url, operations)

    assert paths == {"GET /good": ["/good"]}
    assert left_out["GET /bad/{n}"][0] is None
    assert left_out["GET /bad/{n}"][1].startswith(f"/bad/1 {reason}")
    assert set(arrived) == {b"/good", b"/bad/1"}
