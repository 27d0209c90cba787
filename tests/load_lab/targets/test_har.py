"""Mixes from HAR files."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load_lab.errors import UsageError
from load_lab.targets.mix import LeftOut, Operation, Request, read_mix, write_mix
from load_lab.targets.sources.har import read_har as records
from load_lab.targets.sources.safety import Safety
from load_lab.targets.sources.traffic import collect

CANARY = "canary7f3a"
HOST = "127.0.0.1:8000"
URL = f"http://{HOST}"
SECRETS = [
    ("Authorization", f"Bearer {CANARY}"),
    ("Cookie", f"sessionid={CANARY}"),
    ("X-CSRFToken", CANARY),
    ("Referer", f"http://{HOST}/?{CANARY}"),
]
JSON = [("Accept", "application/json"), ("content-type", "application/json")]


def entry(url: str, method="GET", status=200, headers=(), body=None):
    """Return an entry as Chromium writes it, with a secret wherever one can be."""
    request = {
        "method": method,
        "url": url if "://" in url else f"http://{HOST}{url}",
        "httpVersion": "HTTP/1.1",
        "headers": [{"name": n, "value": v} for n, v in [*SECRETS, *headers]],
        "cookies": [{"name": "sessionid", "value": CANARY}],
        "queryString": [],
    }
    if body is not None:
        request["postData"] = {"mimeType": "application/json", "text": body}
    content = {"size": 1, "mimeType": "text/html", "text": CANARY}
    response = {"status": status, "headers": [], "cookies": [], "content": content}
    return {"startedDateTime": "2026-11-24T10:00:00Z", "request": request, "response": response}


def read_har(path, url, *, templates=(), **safety):
    record = records(path, url)
    return collect(str(path), record, templates, safety=Safety(**safety))


@pytest.fixture
def har(tmp_path):
    """Return a function that writes a HAR file and returns its path."""

    def write(*entries, encoding="utf-8"):
        path = tmp_path / "session.har"
        log = {"version": "1.2", "creator": {"name": "test"}, "entries": entries}
        path.write_text(json.dumps({"log": log}), encoding)
        return path

    return write


SESSION = [
    entry("/"),
    entry("/hotel/1/?page=2#top", headers=JSON),
    entry("/hotel/2/", headers=JSON, status=304, body="ignored"),
    entry("/hotel/2/", headers=[("Accept", "text/html")]),
    entry("/hotel/café/", headers=JSON),
    entry(f"/hotel/?access_token={CANARY}"),
    entry(f"/reset/{CANARY}/"),
    entry("/gone/", status=404),
    entry("/blocked.js", status=0),
    entry("/booking/", "POST", 201, JSON, '{"hotel": 1}'),
    entry("/login/", "POST", 200, JSON, json.dumps({"user": {"password": CANARY}})),
    entry("/form/", "POST", 200, [], f"a=1&csrfmiddlewaretoken={CANARY}"),
    entry(f"https://cdn.example/{CANARY}.js"),
    entry(f"wss://{HOST}/live/"),
    entry("data:text/plain,x://y"),
]
TEMPLATES = ("/hotel/", "/hotel/{id}/", "/reset/{key}/")
JSON_HEADERS = {"accept": "application/json", "content-type": "application/json"}


def test_operations_of_a_session(har):
    mix = read_har(har(*SESSION, encoding="utf-8-sig"), URL, templates=TEMPLATES)
    hotels = ("/hotel/1/?page=2", "/hotel/2/", "/hotel/caf%C3%A9/")
    assert mix.operations == (
        Operation(name="GET /", method="GET", weight=1, expect=200, requests=(Request(path="/"),)),
        Operation(
            name="GET /hotel/{id}/ (accept: application/json, content-type: application/json)",
            method="GET",
            weight=3,
            expect=200,
            headers=JSON_HEADERS,
            requests=tuple(Request(path=path) for path in hotels),
        ),
        Operation(
            name="GET /hotel/{id}/ (accept: text/html)",
            method="GET",
            weight=1,
            expect=200,
            headers={"accept": "text/html"},
            requests=(Request(path="/hotel/2/"),),
        ),
    )


def test_what_is_left_out_of_a_session(har):
    mix = read_har(har(*SESSION), URL, templates=TEMPLATES)
    reasons = {
        ("GET /hotel/", 200): "it may have a credential: token (1 requests)",
        ("GET /reset/{key}/", 200): "not safe: stem `reset` (1 requests)",
        ("GET /gone/", 404): "answered 4xx (1 requests)",
        ("GET /blocked.js", None): "answered nothing (1 requests)",
        ("POST /booking/", 201): "not safe: POST (1 requests)",
        ("POST /login/", 200): "not safe: POST (1 requests)",
        ("POST /form/", 200): "not safe: POST (1 requests)",
        ("cdn.example", 200): "another host (1 requests)",
        ("wss:", 200): "no HTTP request of this server (1 requests)",
        ("data:", 200): "no HTTP request of this server (1 requests)",
    }
    assert mix.left_out == tuple(
        LeftOut(name=name, status=status, reason=reason)
        for (name, status), reason in reasons.items()
    )


def test_bodies_are_in_the_mix_only_with_writes(har):
    path = har(*SESSION)
    assert not [r for op in read_har(path, URL).operations for r in op.requests if r.body]
    mix = read_har(path, URL, templates=TEMPLATES, writes=True)
    posts = [op for op in mix.operations if op.method == "POST"]
    assert [(op.name, op.expect, op.headers) for op in posts] == [
        ("POST /booking/", 201, JSON_HEADERS)
    ]
    assert posts[0].requests == (Request(path="/booking/", body='{"hotel": 1}'),)
    reasons = {each.name: each.reason for each in mix.left_out}
    assert "credential: passw" in reasons["POST /login/"]
    assert "credential: token" in reasons["POST /form/"]


def test_every_entry_is_in_the_mix_or_left_out(har):
    cached = entry("/cached/") | {"_fromCache": "disk"}
    odd = [entry("/odd/"), entry("/odd/")]
    odd[0]["request"]["headers"] = {"Accept": "*/*"}
    del odd[1]["response"]["status"]
    entries = [*SESSION, cached, *odd, "no entry", entry("blob:http://a/1"), entry("ftp://a/b")]
    mix = read_har(har(*entries), URL, templates=TEMPLATES)
    left_out = {each.name: each.reason for each in mix.left_out}
    assert left_out[HOST] == "from the browser's cache (1 requests)"
    assert left_out["entry 17"].startswith("request.headers: ")
    assert left_out["entry 18"].startswith("response.status: ")
    assert left_out["entry 19"].startswith("the whole: ")
    assert {"blob:", "ftp:"} < set(left_out)
    counts = (int(reason.rpartition("(")[2].split()[0]) for reason in left_out.values())
    assert sum(counts) + sum(each.weight for each in mix.operations) == len(entries)


def test_operations_that_differ_by_a_header_have_names_that_differ(har):
    entries = [entry("/a/", headers=[("Accept", kind)]) for kind in ("text/html", "image/png")]
    names = [each.name for each in read_har(har(*entries, entry("/b/")), URL).operations]
    assert names == ["GET /a/ (accept: text/html)", "GET /a/ (accept: image/png)", "GET /b/"]


def test_path_of_the_target_is_not_repeated(har):
    entries = (entry("/shop/orders/1/"), entry("/shop"), entry("/shopping/"))
    mix = read_har(har(*entries), f"{URL}/shop/", templates=["/orders/{id}/"])
    assert [(each.name, each.requests[0].path) for each in mix.operations] == [
        ("GET /orders/{id}/", "/orders/1/"),
        ("GET /", "/"),
    ]
    assert [each.reason for each in mix.left_out] == ["outside of the target's path (1 requests)"]


@pytest.mark.parametrize("writes", [False, True])
def test_no_secret_of_a_session_is_in_the_mix(writes, har, tmp_path):
    path = har(*SESSION)
    assert CANARY in path.read_text()
    mix = read_har(path, URL, templates=TEMPLATES, writes=writes)
    write_mix(mix, tmp_path / "mix.json")
    assert CANARY not in (tmp_path / "mix.json").read_text()
    assert read_mix(tmp_path / "mix.json") == mix


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("example.org", "https://example.org:443/a/"),
        ("Example.org", "http://user:pass@EXAMPLE.org/a/"),
        ("example.org:80", "http://example.org/a/"),
        ("example.org:8080", "https://example.org:8080/a/"),
        ("[::1]:8000", "http://[::1]:8000/a/"),
    ],
)
def test_hosts_are_compared_without_the_port_of_their_scheme(host, url, har):
    assert read_har(har(entry(url)), f"http://{host}").operations[0].name == "GET /a/"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("<html>", "is not JSON"),
        ("[]", "is no HAR file"),
        ('{"log": {"entries": [{"request": {}}]}}', "entry 1: request.method: Field required"),
        ('{"log": {"entries": []}}', "has no entries. Record one"),
        (json.dumps({"log": {"entries": [entry("http://a/")]}}), "a: another host (1 requests)"),
        (json.dumps({"log": {"entries": [entry("http://[")]}}), "no HTTP request of this server"),
        (json.dumps({"log": {"entries": [entry("/a/", status=500)]}}), "GET /a/: answered 5xx"),
    ],
)
def test_a_file_without_a_usable_request_is_a_usage_error(content, message, tmp_path):
    path = tmp_path / "session.har"
    path.write_text(content)
    with pytest.raises(UsageError) as error:
        read_har(path, URL)
    assert message in str(error.value)
    assert len(str(error.value)) < 600


def test_a_file_that_is_missing_or_no_text_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_har(tmp_path / "session.har", URL)
    (tmp_path / "session.har").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is not JSON"):
        read_har(tmp_path / "session.har", URL)


TEXTS = st.text(max_size=12)
ENTRIES = st.builds(
    lambda path, method, status, name, body: entry(
        f"http://a/{path}", method, status, [(name, path)], body
    ),
    TEXTS,
    st.sampled_from(["GET", "POST"]) | TEXTS,
    st.integers(),
    st.sampled_from(["accept", "prefer"]) | TEXTS,
    st.none() | TEXTS,
)
DOCUMENTS = st.recursive(
    st.none() | TEXTS | st.integers() | ENTRIES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(ENTRIES | DOCUMENTS, max_size=4), st.booleans())
def test_arbitrary_documents_raise_usage_errors_only(tmp_path, entries, writes):
    path = tmp_path / "session.har"
    path.write_text(json.dumps({"log": {"entries": entries}}))
    try:
        mix = read_har(path, "http://a", writes=writes)
    except UsageError:
        return
    write_mix(mix, tmp_path / "mix.json")
    assert read_mix(tmp_path / "mix.json") == mix
