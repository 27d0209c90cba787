"""The cache in front of a target: real Nginx, a server that answers with who asks."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import ClassVar

import httpx
import pytest

from load_lab.errors import UsageError
from load_lab.stack.native.supervision import wait_for
from load_lab.targets.cache_in_front import why_not_stored
from tests.support.http_server import QuietHandler, serve_http
from tests.support.target_front import target_front

WHO = ("Authorization", "Cookie", "X-Api-Key")
NAMED = ("GET /items/", "GET /items/{id}/", "GET /special/{kind}/")
# Answers that must not be stored, and why.
UNSTORABLE = {
    "cookie": (200, {"Set-Cookie": "session=1"}, "sets a cookie"),
    "private": (200, {"Cache-Control": "private"}, "has Cache-Control: private"),
    "no-store": (200, {"Cache-Control": "max-age=60, no-store"}, "has Cache-Control: max-age=60,"),
    "no-cache": (200, {"Cache-Control": "No-Cache"}, "has Cache-Control: No-Cache"),
    "private-shared": (200, {"Cache-Control": "s-maxage=60, private"}, "has Cache-Control"),
    "max-age-0": (200, {"Cache-Control": "max-age=0"}, "has Cache-Control: max-age=0"),
    "s-maxage-0": (200, {"Cache-Control": "max-age=9, s-maxage=0"}, "has Cache-Control"),
    "vary": (200, {"Vary": "Accept, X-Tenant"}, "has Vary: x-tenant"),
    "vary-agent": (200, {"Vary": "User-Agent,Accept"}, "has Vary: user-agent"),
    "vary-all": (200, {"Vary": "*"}, "has Vary: *"),
    "accepted": (202, {}, "answers 202"),
    "redirect": (302, {"Location": "/login/"}, "answers 302"),
    "moved": (301, {"Location": "/items/", "Cache-Control": "max-age=60"}, "answers 301"),
    "forbidden": (403, {}, "answers 403"),
    "missing": (404, {}, "answers 404"),
    "gone": (410, {"Cache-Control": "max-age=60"}, "answers 410"),
    "too-many": (429, {"Retry-After": "1"}, "answers 429"),
}
STORABLE = {
    "plain": (200, {}),
    "shared": (200, {"Vary": "Accept, Cookie", "Cache-Control": "max-age=60"}),
    "public": (200, {"Vary": "accept-encoding,Origin", "Cache-Control": "public, max-age=60"}),
    "shared-caches": (200, {"Cache-Control": "max-age=0, s-maxage=60"}),
    "tagged": (200, {"ETag": '"a"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}),
}
FAILING = {"broken": (500, {}), "unavailable": (503, {"Retry-After": "1"}), "odd": (507, {})}
SPECIAL = {kind: (status, headers) for kind, (status, headers, _) in UNSTORABLE.items()}
SPECIAL |= STORABLE | FAILING


class Handler(QuietHandler):
    """Answers with who asks, the method, the path, the body, and the number of the request; under
    /special/KIND/ with the status and headers of that kind, which `changed` replaces after
    `unchanged` requests.
    """

    seen: ClassVar[list[str]] = []
    changed: ClassVar[str] = ""
    unchanged: ClassVar[int] = 0
    delay: ClassVar[float] = 0
    # How many requests wait, and the most at once.
    waiting: ClassVar[set[object]] = set()
    most: ClassVar[int] = 0

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        who = next((self.headers[name] for name in WHO if self.headers[name]), "nobody")
        self.seen.append(f"{self.command} {self.path}")
        text = f"{who} {self.command} {self.path} {body} {len(self.seen)}".encode()
        kind = self.path.split("/")[2] if self.path.startswith("/special/") else ""
        changed = self.changed if kind and len(self.seen) > self.unchanged else ""
        status, headers = SPECIAL.get(changed or kind, (200, {}))
        self.waiting.add(self)
        Handler.most = max(self.most, len(self.waiting))
        time.sleep(self.delay)
        self.waiting.discard(self)
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
    Handler.changed, Handler.unchanged, Handler.delay, Handler.most = "", 0, 0, 0

    @contextmanager
    def start(mode, *lines, named=NAMED, mix=NAMED, seconds=60):
        front = target_front(server, tmp_path, mode, named, *lines, mix=mix, seconds=seconds)
        with front as client:
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


@pytest.mark.parametrize("kind", UNSTORABLE)
def test_what_is_not_for_everybody_is_not_stored(fronted, kind):
    status, headers, reason = UNSTORABLE[kind]
    with fronted("protected") as client:
        answers = [client.get(f"/special/{kind}/") for _ in range(4)]
    assert len({each.text for each in answers}) == 4
    for answer in answers:
        assert answer.status_code == status
        assert answer.headers["X-Cache-Status"] == "UNSTORABLE"
        assert headers.items() <= {name: answer.headers[name] for name in headers}.items()
    assert why_not_stored(status, httpx.Headers(headers)).startswith(reason)


@pytest.mark.parametrize("kind", STORABLE)
def test_what_is_for_everybody_is_stored_with_its_headers(fronted, kind):
    status, headers = STORABLE[kind]
    with fronted("protected") as client:
        answers = [client.get(f"/special/{kind}/") for _ in range(3)]
    assert [each.headers["X-Cache-Status"] for each in answers] == ["MISS", "HIT", "HIT"]
    assert len({each.text for each in answers}) == 1
    for answer in answers:
        assert headers == {name: answer.headers[name] for name in headers}
        internal = {name for name in answer.headers if name.startswith(("x-lab-", "x-accel"))}
        assert not internal
    assert why_not_stored(status, httpx.Headers(headers)) == ""


@pytest.mark.parametrize("kind", FAILING)
def test_failure_is_shared_for_a_second(fronted, kind):
    with fronted("protected") as client:
        answers = [client.get(f"/special/{kind}/") for _ in range(3)]
        assert {each.status_code for each in answers} == {FAILING[kind][0]}
        assert len(Handler.seen) == 1
        wait_for(
            lambda: client.get(f"/special/{kind}/") and len(Handler.seen) > 1,
            seconds=5,
            what="Another request",
        )
    assert why_not_stored(FAILING[kind][0], httpx.Headers(FAILING[kind][1])) == ""


def _state(client, path):
    return client.get(path).headers["X-Cache-Status"]


def _at_once(client, path, count=20):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(client.get, [path] * count))


@pytest.mark.parametrize("kind", ["cookie", "vary-all", "missing", "redirect"])
def test_answers_that_are_not_stored_do_not_wait_for_each_other(fronted, kind):
    with fronted("protected") as client:
        client.get(f"/special/{kind}/")
        Handler.delay = 0.3
        answers = _at_once(client, f"/special/{kind}/")
    assert len({each.text for each in answers}) == 20
    assert Handler.most > 10


def test_many_requests_for_a_page_cost_the_target_one(fronted):
    Handler.delay = 0.3
    with fronted("protected", seconds=1) as client:
        for number in (1, 2):
            assert {each.status_code for each in _at_once(client, "/items/8/")} == {200}
            assert len(Handler.seen) == number
            # Beyond the stale window, so that all wait for the refresh.
            time.sleep(3.1)


def test_page_is_new_after_an_idle_period(fronted):
    with fronted("protected", seconds=1) as client:
        texts = [client.get("/items/").text]
        time.sleep(3.1)
        texts.append(client.get("/items/").text)
    assert [text.split()[-1] for text in texts] == ["1", "2"]


def test_failures_of_many_requests_are_one(fronted):
    Handler.delay = 0.3
    with fronted("protected") as client:
        assert {each.status_code for each in _at_once(client, "/special/broken/")} == {500}
        assert len(Handler.seen) == 1


def test_check_before_the_load_leaves_out_what_must_not_be_stored(fronted, capsys):
    kinds = ("cookie", "no-store", "missing", "shared", "broken")
    named = [f"GET /special/{kind}/" for kind in kinds]
    with fronted("protected", named=named, mix=named) as client:
        states = {kind: _state(client, f"/special/{kind}/") for kind in kinds}
        again = _state(client, "/special/shared/")
        Handler.changed = "plain"
        changed = {kind: _state(client, f"/special/{kind}/") for kind in kinds}
        own = client.get("/special/cookie/", headers={"Cookie": "a=b"})
        posted = client.post("/special/cookie/")
    left_out = dict.fromkeys(("cookie", "no-store", "missing"), "BYPASS")
    assert states == left_out | {"shared": "MISS", "broken": "MISS"}
    assert again == "HIT"
    assert {kind: changed[kind] for kind in left_out} == dict.fromkeys(left_out, "STORABLE")
    assert {each.headers["X-Cache-Status"] for each in (own, posted)} == {"BYPASS"}
    assert [line for line in capsys.readouterr().err.splitlines() if "not cached" in line] == [
        "GET /special/cookie/ sets a cookie: not cached",
        "GET /special/no-store/ has Cache-Control: max-age=60, no-store: not cached",
        "GET /special/missing/ answers 404: not cached",
    ]


def test_operation_that_changes_during_the_load_is_stored_again_later(fronted):
    path = "/special/plain/"
    with fronted("protected", seconds=1) as client:
        assert _state(client, path) == "MISS"
        for kind, state in (("cookie", "UNSTORABLE"), ("plain", "HIT"), ("vary", "UNSTORABLE")):
            Handler.changed = kind
            wait_for(
                lambda state=state: _state(client, path) == state,
                seconds=6,
                what=state,
            )


def test_result_names_what_was_not_cached_and_what_changed(lab, stack, fronted, tmp_path):
    named = ["GET /special/cookie/", "GET /special/public/"]
    # The command waits for the programs that another one has started.
    with fronted("protected", named=named, mix=named, seconds=1):
        pass
    Handler.changed, Handler.unchanged = "private", 30
    hold = ("k6", "hold", "--rate", "20", "--duration", "7s", "--json")
    run = lab(*hold, "--target", str(tmp_path / "shop.toml"))
    assert run.code == 0, run.err
    assert "GET /special/cookie/ sets a cookie: not cached" in run.err
    assert run.json["not_cached"] == {"GET /special/cookie/": "sets a cookie"}
    found = {each["name"]: each for each in run.json["by_operation"]}
    assert run.json["cache"]["nginx"]["UNSTORABLE"] == found["GET /special/public/"]["unstorable"]
    assert found["GET /special/public/"]["unstorable"] > 0
    assert found["GET /special/cookie/"]["unstorable"] == 0
    assert [each["storable"] for each in found.values()] == [0, 0]


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
