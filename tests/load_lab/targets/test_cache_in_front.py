"""The cache in front of a target: real Nginx, a server that answers with who asks."""

import json
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import ClassVar

import httpx
import pytest

from load_lab.errors import UsageError
from load_lab.settings import load_settings
from load_lab.targets.app_process import running
from load_lab.targets.declared import find_target
from tests.support.http_server import QuietHandler, serve_http

WHO = ("Authorization", "Cookie", "X-Api-Key")
NAMED = ("GET /items/", "GET /items/{id}/", "GET /special/{kind}/")
SPECIAL = {
    "cookie": (200, {"Set-Cookie": "session=1"}),
    "private": (200, {"Cache-Control": "private"}),
    "no-store": (200, {"Cache-Control": "max-age=60, no-store"}),
    "vary": (200, {"Vary": "Accept, X-Tenant"}),
    "shared": (200, {"Vary": "Accept, Cookie", "Cache-Control": "max-age=60"}),
    "missing": (404, {}),
    "broken": (500, {}),
}


class Handler(QuietHandler):
    """Answers with who asks, the method, the path, the body, and the number of the request."""

    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        who = next((self.headers[name] for name in WHO if self.headers[name]), "nobody")
        self.seen.append(f"{self.command} {self.path}")
        text = f"{who} {self.command} {self.path} {body} {len(self.seen)}".encode()
        status, headers = SPECIAL.get(self.path.split("/")[2], (200, {}))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET


@pytest.fixture(scope="module")
def server():
    with serve_http(Handler) as url:
        yield url


@pytest.fixture
def fronted(server, tmp_path):
    """Return a function that starts a cache in front of the server; it yields a client."""

    @contextmanager
    def start(mode, *lines, named=NAMED):
        names = json.dumps(named)
        path = tmp_path / "shop.toml"
        cache = f'[cache]\nmode = "{mode}"\nseconds = 60\noperations = {names}\n'
        path.write_text("\n".join([f'url = "{server}"', 'ready = "/items/"', *lines, cache]))
        operations = [
            {"name": n, "method": "GET", "weight": 1, "expect": 200, "requests": [{"path": "/"}]}
            for n in (*NAMED, "GET /own/")
        ]
        mix = {"mix_version": 1, "source": "a test", "operations": operations}
        (tmp_path / "shop.mix.json").write_text(json.dumps(mix))
        with (
            running(find_target(str(path)), load_settings()) as target,
            httpx.Client(base_url=target.k6_env()["BASE_URL"]) as client,
        ):
            Handler.seen.clear()
            yield client

    return start


def test_protected_never_hands_an_answer_to_another(fronted, monkeypatch):
    monkeypatch.setenv("SHOP_KEY", "k")
    with fronted("protected", '[headers]\nX-Api-Key = "${SHOP_KEY}"') as client:
        for path in ("/items/", "/items/7/", "/items/7/?page=2", "/own/"):
            for _ in range(2):
                for header in WHO:
                    for user in ("ada", "bob"):
                        text = client.get(path, headers={header: user}).text
                        assert text.startswith(f"{user} GET {path} "), text
                assert client.get(path).text.startswith(f"nobody GET {path} ")


def test_header_that_the_file_does_not_name_is_not_handed_on(fronted):
    with fronted("protected") as client:
        assert client.get("/items/", headers={"X-Api-Key": "ada"}).text.startswith("nobody ")
        assert client.get("/own/", headers={"X-Api-Key": "ada"}).text.startswith("ada ")


@pytest.mark.parametrize("mode", ["basic", "protected"])
def test_named_operations_reach_the_target_once(fronted, mode):
    with fronted(mode) as client:
        for path in ("/items/", "/items/7/", "/items/7/?page=2", "/items/a%20b/"):
            states = [client.get(path).headers["X-Cache-Status"] for _ in range(10)]
            assert states == ["MISS"] + ["HIT"] * 9
        assert len(Handler.seen) == 4, states


def test_other_requests_pass_unchanged(fronted):
    paths = (
        "/own/",
        "/own//items/",
        "/items/%2F/",
        "/items/7/more/",
        "/ITEMS/",
        "/items/../own/",
        "/items/7",
    )
    with fronted("protected") as client:
        for path in paths * 2:
            text, state = _ask(client, path)
            assert f" GET {path} " in text
            assert state == "BYPASS"
        posted = client.post("/items/", content="a body")
        assert posted.text.startswith("nobody POST /items/ a body ")
        assert posted.headers["X-Cache-Status"] == "BYPASS"


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_not_for_everybody_is_not_stored(fronted, kind):
    with fronted("protected") as client:
        texts = {client.get(f"/special/{kind}/").text for _ in range(3)}
        assert len(texts) == (1 if kind == "shared" else 3)


def test_off_passes_everything(fronted):
    with fronted("off") as client:
        assert len({client.get("/items/").text for _ in range(3)}) == 3


@pytest.mark.parametrize(
    ("mode", "lines", "message"),
    [
        ("basic", ['[headers]\nX-Api-Key = "${SHOP_KEY}"'], "answer of another"),
        ("basic", ['[auth]\ncommand = ["true"]'], "answer of another"),
        ("some", [], "cache.mode"),
    ],
)
def test_unsafe_or_unknown_mode_is_refused(fronted, mode, lines, message):
    with pytest.raises(UsageError, match=message), fronted(mode, *lines):
        pass


def test_operation_that_the_mix_lacks_is_refused(fronted):
    unknown = ("GET /item/",)
    with pytest.raises(UsageError, match="Is it GET /items/"), fronted("off", named=unknown):
        pass


def _ask(client, path):
    """Send the path as it is: httpx would change it."""
    connection = HTTPConnection(client.base_url.host, client.base_url.port)
    connection.request("GET", path)
    response = connection.getresponse()
    text, state = response.read().decode(), response.headers["X-Cache-Status"]
    connection.close()
    return text, state
