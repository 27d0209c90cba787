"""Mixes from access logs, written by a real Nginx where its format matters."""

import gzip
import json
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load_lab.errors import UsageError
from load_lab.targets.mix import read_mix, write_mix
from load_lab.targets.sources.log import read_log
from load_lab.targets.sources.paths import Template
from load_lab.targets.sources.safety import Safety
from load_lab.targets.sources.traffic import collect
from tests.support.nginx_front import Backend, front, raw

CANARY = "canary7f3a"
TEMPLATES = ("/api/hotel/", "/api/hotel/{id}/", "/api/hotel/{id}/ping/")
LINE = '10.0.0.1 - - [24/Nov/2026:10:00:{second:02} +0100] "{request} HTTP/1.1" {status} 5 "-" "-"'


def combined(*requests: str, status: int = 200, second: int = 0) -> str:
    lines = (LINE.format(request=request, status=status, second=second) for request in requests)
    return "".join(f"{line}\n" for line in lines)


def read_access_log(path, url="", *, keep_times=False, templates=(), most=100, **safety):
    record = read_log(path, url, keep_times=keep_times)
    return collect(str(path), record, templates, most=most, safety=Safety(**safety))


@pytest.fixture
def log(tmp_path):
    """Return a function that writes a log and returns its path."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "access.log"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture(scope="module", params=["lab_json", "combined"])
def nginx_log(request, tmp_path_factory):
    """Return format and path of a log that the project's Nginx wrote."""
    folder, backend = tmp_path_factory.mktemp(request.param), Backend()

    def set_format(folder: Path) -> None:
        conf = folder / "nginx.conf"
        conf.write_text(
            conf.read_text().replace("lab_json buffer=64k flush=1s", request.param), "utf-8"
        )

    with front(folder, backend, alter=set_format) as client:
        headers = {"Authorization": CANARY, "Cookie": f"a={CANARY}"}
        for path in ("1/", "2/?b=%C3%A9&c", "caf%C3%A9/", "a%20b%3F%22/", "badge-3.svg"):
            client.get(f"/api/hotel/{path}", headers=headers)
        client.head("/api/hotel/", headers=headers)
        etag = client.get("/api/hotel/?page=2").headers["ETag"]
        assert client.get("/api/hotel/", headers={"If-None-Match": etag}).status_code == 304
        client.get(f"/api/hotel/?page=2&access_token={CANARY}")
        client.get("/api/hotel/", headers={"Referer": f"http://a/?{CANARY}", "User-Agent": CANARY})
        client.post("/api/hotel/", json={})
        client.get("/api/hotel/1/ping/")
        client.get("/missing/")
        raw(client, '/api/hotel/"q"/')
        raw(client, f"http://user:{CANARY}@lab/api/hotel/")
        raw(client, "/", method="\x16\x03")
    return request.param, folder / "access.log"


def test_operations_of_a_log_that_nginx_wrote(nginx_log, capsys):
    log_format, path = nginx_log
    result = read_access_log(path, templates=TEMPLATES, keep_times=True)
    has_query = log_format == "combined"
    operations = {op.name: op for op in result.operations}
    addresses = {name: [r.path for r in op.requests] for name, op in operations.items()}
    # The path of the lab's JSON has no query string, and nothing but ASCII.
    assert addresses["GET /api/hotel/{id}/"] == (
        ["/api/hotel/1/", "/api/hotel/2/?b=%C3%A9&c", "/api/hotel/caf%C3%A9/"]
        if has_query
        else ["/api/hotel/1/", "/api/hotel/2/"]
    ) + ["/api/hotel/a%20b%3F%22/", "/api/hotel/%22q%22/"]
    assert addresses["GET /api/hotel/{value}.svg"] == ["/api/hotel/badge-3.svg"]
    assert addresses["HEAD /api/hotel/"] == ["/api/hotel/"]
    assert operations["GET /api/hotel/"].weight == (3 if has_query else 4)
    assert {op.expect for op in operations.values()} == {200}
    assert "lines" not in {each.name for each in result.left_out}
    assert "whole seconds" in capsys.readouterr().err
    assert len(result.arrivals) == sum(op.weight for op in operations.values())


def test_left_out_of_a_log_that_nginx_wrote(nginx_log):
    log_format, path = nginx_log
    left_out = read_access_log(path, templates=TEMPLATES).left_out
    reasons = {(each.name, each.reason) for each in left_out}
    assert reasons >= {
        ("GET /api/hotel/{id}/ping/", "not safe: stem `ping` (1 requests)"),
        ("POST /api/hotel/", "not safe: POST (1 requests)"),
    }
    if log_format == "combined":
        assert reasons >= {
            ("GET /api/hotel/", "it may have a credential: token (1 requests)"),
            ("lab", "another host (1 requests)"),
            ("no HTTP request", "no method of a mix (1 requests)"),
        }


def test_no_secret_of_a_log_is_in_the_mix(nginx_log, tmp_path):
    log_format, path = nginx_log
    if log_format == "combined":
        assert CANARY in path.read_text()
    mix = read_access_log(path, templates=TEMPLATES, writes=True)
    write_mix(mix, tmp_path / "mix.json")
    assert CANARY not in (tmp_path / "mix.json").read_text()
    assert read_mix(tmp_path / "mix.json") == mix


def test_paths_without_a_template_are_named_by_their_shape(log):
    paths = {
        "/api/v1/hotels/12/": "/api/v1/hotels/{value}/",
        "/badge/0190c6a5-0000-4000-8000-00000000beef/web.svg": "/badge/{value}/web.svg",
        "/blog/2026/winter-sale-2/": "/blog/{value}/{value}/",
        "/blog/winter-sale/": "/blog/winter-sale/",
        "/assets/app.5f3ac1.js": "/assets/{value}.js",
        "/commit/5f3ac1de/": "/commit/{value}/",
        "/u/a%40b.de/": "/u/{value}.de/",
        "/.well-known/x/": "/.well-known/x/",
        f"/d/{'word' * 10}": "/d/{value}",
    }
    mix = read_access_log(log(combined(*(f"GET {path}" for path in paths))))
    assert {op.requests[0].path: op.name.removeprefix("GET ") for op in mix.operations} == paths


def test_the_template_with_the_fewest_parameters_names_a_path(log):
    templates = ["/{any}/{id}/", "/hotel/{id}/", "/hotel/new/", "/{any}/{other}/"]
    content = combined("GET /hotel/new/", "GET /hotel/1/", "GET /suite/1/")
    mix = read_access_log(log(content), templates=templates)
    names = [op.name for op in mix.operations]
    assert names == ["GET /hotel/new/", "GET /hotel/{id}/", "GET /{any}/{id}/"]


def test_more_unnamed_paths_than_operations_are_left_out(log):
    words = ("".join(chr(97 + int(digit)) for digit in str(i)) for i in range(2000))
    mix = read_access_log(log(combined(*(f"GET /wiki/{word}" for word in words))))
    assert len(mix.operations) == 1000
    assert len(mix.left_out) == 201
    assert "over 1000 paths without a template" in mix.left_out[0].reason
    assert mix.left_out[-1].reason == "rare: 800 requests"


def test_requests_of_an_operation_are_drawn_evenly_and_by_frequency(log):
    often, seldom = ("GET /item/?id=1", "GET /item/?id=2"), "GET /item/?id=3"
    content = combined(*((*often, seldom) * 2 + often * 8) * 100, "GET /about/", "GET /about/")
    mix = read_access_log(log(content), most=50)
    addresses = [request.path for request in mix.operations[0].requests]
    counts = [addresses.count(f"/item/?id={i}") for i in (1, 2, 3)]
    assert sum(counts) == 50
    # Of 22 requests 10, 10 and 2.
    assert min(counts[:2]) > 12 > counts[2] > 0
    assert [request.path for request in mix.operations[1].requests] == ["/about/"]
    assert read_access_log(log(content), most=50) == mix


def test_status_decides_what_is_expected_and_what_is_left_out(log):
    content = "".join(
        combined("GET /a/", status=status) for status in (304, 206, 200, 204, 302, 404, 500, 503)
    )
    mix = read_access_log(log(content))
    assert [(op.name, op.weight, op.expect) for op in mix.operations] == [("GET /a/", 4, 200)]
    assert sorted((each.status, each.reason) for each in mix.left_out) == [
        (302, "answered 3xx (1 requests)"),
        (404, "answered 4xx (1 requests)"),
        (500, "answered 5xx (2 requests)"),
    ]


@pytest.mark.parametrize(
    "target",
    [
        *(f"/?{name}=x" for name in ("api_key", "apiKey", "code", "X-Amz-Signature", "sessionid")),
        *("/?a=1&password=x", "/?%74oken=x", "/a;jsessionid=x", "/?a=eyJhb.eyJzd.x", "/?sig=x"),
        *("/?oauthToken=x", "/eyJhbG.eyJzdW.x/", "/reset-it/x/"),
    ],
)
def test_a_credential_is_left_out(target, log):
    content = combined(f"GET {target}", "GET /?keyword=1&author=2&encode=3")
    mix = read_access_log(log(content), templates=["/", "/reset-it/{token}/"])
    assert [request.path for op in mix.operations for request in op.requests] == [
        "/?keyword=1&author=2&encode=3"
    ]
    assert "credential" in mix.left_out[0].reason


@pytest.mark.parametrize("target", ["/ping/1", "/a/?do=delete", "/x/LOGOUT", "/bye/"])
def test_a_get_that_may_write_is_left_out_unless_named(target, log):
    content = combined(f"GET {target}", "GET /how-to-delete-a-user-1/")
    templates = ["/ping/{id}", "/a/", "/x/{action}", Template("GET", "/bye/", views=("logout",))]
    (left_out,) = read_access_log(log(content), templates=templates).left_out
    assert "not safe: stem" in left_out.reason
    mix = read_access_log(log(content), templates=templates, named=[left_out.name])
    assert (mix.operations[0].name, mix.left_out) == (left_out.name, ())


def test_writes_are_in_the_mix_only_if_allowed(log):
    path = log(combined("POST /a/", "DELETE /a/", "OPTIONS /a/", "GET /b/"))
    names = [op.name for op in read_access_log(path, writes=True).operations]
    assert names == ["POST /a/", "DELETE /a/", "GET /b/"]
    assert [op.name for op in read_access_log(path).operations] == ["GET /b/"]


def test_arrivals_are_spread_over_their_second(log, capsys):
    content = (
        combined("GET /a/", "GET /b/", "POST /a/", second=5)
        + combined("GET /a/?1", second=7)
        # Of another worker of Nginx.
        + combined("GET /a/?2", "GET /b/", second=5)
    )
    result = read_access_log(log(content), keep_times=True)
    operations = result.operations
    arrivals = [(a.at, operations[a.operation].requests[a.request].path) for a in result.arrivals]
    assert arrivals == [(0, "/a/"), (0.25, "/b/"), (0.5, "/a/?2"), (0.75, "/b/"), (2, "/a/?1")]
    assert "whole seconds" in capsys.readouterr().err
    assert read_access_log(log(content)).arrivals == ()


def test_arrivals_with_fractions_stay_as_they_are(log, capsys):
    lines = [
        {"time": f"2026-11-24T10:00:0{s}+01:00", "method": "GET", "path": "/a/", "status": 200}
        for s in ("1.250", "0.750", "1.250")
    ]
    result = read_access_log(log("\n".join(map(json.dumps, lines))), keep_times=True)
    assert [arrival.at for arrival in result.arrivals] == [0, 0.5, 0.5]
    assert "whole seconds" not in capsys.readouterr().err


def test_an_arrival_has_the_drawn_request_before_it(log):
    requests = (f"GET /a/?n={i}" for i in range(1000))
    mix = read_access_log(log(combined(*requests)), most=10, keep_times=True)
    numbers = [int(request.path.rpartition("=")[2]) for request in mix.operations[0].requests]
    assert numbers == sorted(numbers)
    assert numbers[0] < 400 < 600 < numbers[-1]
    sent = [numbers[arrival.request] for arrival in mix.arrivals]
    before = [max((n for n in numbers if n <= i), default=numbers[0]) for i in range(1000)]
    assert sent == before


def test_broken_lines_are_counted_and_gzip_is_read(log, capsys):
    content = combined("GET /a/", "GET /a/")
    content = content[40:] + "\n" + content + '{"time": 1}\n' + combined("GET /b/") * 3
    for written in (content.encode(), gzip.compress(content.encode())):
        result = read_access_log(log(written))
        [lines] = result.left_out
        # Not the line itself, which may have a secret.
        assert lines.reason == "of no known format (2 requests)"
        first = '2 of 8 lines could not be read; the first is line 1: ] "GET /a/ HTTP/1.1" 200'
        assert first in capsys.readouterr().err
        assert [(op.name, op.weight) for op in result.operations] == [
            ("GET /a/", 3),
            ("GET /b/", 3),
        ]


def test_log_from_a_pipe_keeps_the_requests_to_its_own_host(tmp_path):
    pipe = tmp_path / "access.log"
    os.mkfifo(pipe)
    content = combined("GET http://shop:80/a/", "GET http://other/b/", "GET /c/")
    writer = threading.Thread(target=pipe.write_text, args=(content,))
    writer.start()
    mix = read_access_log(pipe, "http://shop")
    writer.join()
    assert [each.name for each in mix.operations] == ["GET /a/", "GET /c/"]
    assert [(each.name, each.reason) for each in mix.left_out] == [
        ("other", "another host (1 requests)")
    ]


def requests_of(log, *lines, url="http://a", **options):
    """Return the addresses of each operation in the mix of these lines."""
    result = read_access_log(log("".join(f"{line}\n" for line in lines)), url, **options)
    return {o.name: [r.path for r in o.requests] for o in result.operations}


@pytest.mark.parametrize(
    ("request_line", "path"),
    [
        (r"GET /search/?q=\"red\\shoe\" HTTP/1.1", "/search/?q=%22red%5Cshoe%22"),
        (r"GET /search/?q=\x22red\x5Cshoe HTTP/1.1", "/search/?q=%22red%5Cshoe"),
        (r"GET /a\tb/\xc3\xa9/ HTTP/2.0", "/a%09b/%c3%a9/"),
        # HTTP/0.9, and formats without the protocol.
        ("GET /plain/", "/plain/"),
        ("GET /with a space/ HTTP/1.1", "/with%20a%20space/"),
        ("GET https://shop.example.com/api/?page=2 HTTP/1.1", "/api/?page=2"),
        ("GET http://shop.example.com HTTP/1.1", "/"),
        ("GET http://user:pass@shop.example.com?page=2 HTTP/1.1", "/?page=2"),
    ],
)
def test_request_lines_of_other_servers(request_line, path, log):
    line = f'10.0.0.1 - - [24/Nov/2026:10:00:00 +0100] "{request_line}" 200 5 "-" "-"'
    assert [*requests_of(log, line).values()] == [[path]]


@pytest.mark.parametrize(
    ("hosts", "url", "left_out"),
    [
        (["shop.org"] * 3, "http://127.0.0.1:8000", {}),
        (["shop.org"] * 3 + ["scan.net"], "http://127.0.0.1:8000", {"scan.net": 1}),
        (["shop.org"] * 3 + ["127.0.0.1:8000"], "http://127.0.0.1:8000", {"shop.org": 3}),
        # Requests of scanners, for a server that is no proxy.
        (["", "", "", "scan.net", "scan.net"], "http://shop.org", {"scan.net": 2}),
    ],
)
def test_requests_of_another_host_are_counted_apart(hosts, url, left_out, log):
    lines = [f"GET {f'http://{host}' if host else ''}/a/" for host in hosts]
    mix = read_access_log(log(combined(*lines)), url)
    assert {each.name: each.reason for each in mix.left_out} == {
        host: f"another host ({count} requests)" for host, count in left_out.items()
    }
    assert sum(each.weight for each in mix.operations) == len(hosts) - sum(left_out.values())


def test_what_leave_out_names_is_left_out(log):
    lines = combined("GET /a/1/", "GET /a/2/", "GET /b/").splitlines()
    for names in (["GET /a/{id}/"], ["/a/{id}/"]):
        found = requests_of(log, *lines, templates=["/a/{id}/"], leave_out=names)
        assert found == {"GET /b/": ["/b/"]}


def test_secret_of_another_host_is_not_in_its_name(log):
    scans = ("GET http://x:s3cret@scan.net?token=s3cret", "GET http://scan.net")
    lines = combined("GET /a/", "GET /b/", *scans)
    mix = read_access_log(log(lines), "http://a")
    assert [each.name for each in mix.left_out] == ["scan.net"]


def test_path_of_the_target_is_not_repeated(log):
    lines = combined("GET /shop/orders/7/?x=/shop/", "GET /shop", "GET /other/").splitlines()
    found = requests_of(log, *lines, url="http://a/shop", templates=["/orders/{id}/"])
    assert found == {
        "GET /orders/{id}/": ["/orders/7/?x=/shop/"],
        "GET /": ["/"],
        "GET /other/": ["/other/"],
    }


@pytest.mark.parametrize(
    "time",
    ["24/Nov/2026:10:00:00.{} +0100", "2026-11-24T10:00:00.{}+01:00", "1795510800.{}"],
)
def test_fractions_of_a_second_are_kept(time, log, capsys):
    lines = [f'1.2.3.4 - - [{time.format(ms)}] "GET /a/ HTTP/1.1" 200 5' + " " for ms in (250, 750)]
    result = read_access_log(log("\n".join(lines)), keep_times=True)
    assert [each.at for each in result.arrivals] == [0, 0.5]
    assert "whole seconds" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty. Expected: Nginx's combined format"),
        (b"\n \n", "is empty"),
        (
            b"Nov 24 10:00:00 host sshd[1]: no web server " + b"x" * 90,
            "first other one is line 1: Nov 24 10",
        ),
        (b'{"level": "info"}\n' * 3000, 'first other one is line 1: {"level": "info"}'),
        (bytes(range(256)) * 500, "no access log of a known format"),
        (gzip.compress(b"x" * 1000)[:-9], "cannot be read: Compressed file ended"),
        (b"\x1f\x8bno gzip", "cannot be read"),
        (combined("GET /a/", status=404).encode(), "GET /a/: answered 4xx (1 requests)"),
        (combined("GET /b/").encode() + b"other\nlines\n", "first other one is line 2: other"),
    ],
    ids=(
        "empty",
        "blank",
        "syslog",
        "json-without-request",
        "binary",
        "gzip-cut",
        "gzip-broken",
        "failures-only",
        "failures-and-other-lines",
    ),
)
def test_a_file_without_a_usable_line_is_a_usage_error(content, message, log):
    with pytest.raises(UsageError) as error:
        read_access_log(log(content))
    assert message in str(error.value)
    assert len(str(error.value)) < 600


def test_a_file_that_is_missing_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_access_log(tmp_path / "access.log")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_access_log(tmp_path)


TEXTS = st.text(max_size=20) | st.sampled_from(["GET /a/?b", "/../;a=1?&&=", "\\x22", "/%zz{x}"])
STATUSES = st.integers(0, 999) | st.sampled_from([200, 304])
LINES = st.one_of(
    st.binary(max_size=60),
    TEXTS.map(lambda text: text.encode("utf-8", "replace")),
    st.builds(
        '1 - - [{}] "{} {} HTTP/1.1" {:03} 5 "-"'.format,
        st.sampled_from(["24/Nov/2026:10:00:00 +0100", "31/Feb/0000:99:00:00 +9999", ""]) | TEXTS,
        st.sampled_from(["GET", "POST", "get", ""]),
        TEXTS,
        STATUSES,
    ).map(lambda text: text.encode("utf-8", "replace")),
    st.fixed_dictionaries(
        {"time": TEXTS, "method": st.just("GET") | TEXTS, "path": TEXTS, "status": STATUSES}
    ).map(lambda fields: json.dumps(fields).encode()),
)


@given(st.lists(LINES, max_size=8), st.lists(TEXTS, max_size=3), st.booleans())
def test_arbitrary_lines_raise_usage_errors_only(tmp_path, lines, templates, is_option_set):
    path = tmp_path / "access.log"
    path.write_bytes(b"\n".join(lines))
    try:
        mix = read_access_log(
            path, templates=templates, writes=is_option_set, keep_times=is_option_set
        )
    except UsageError:
        return
    write_mix(mix, tmp_path / "mix.json")
    assert read_mix(tmp_path / "mix.json") == mix
    assert all(r.path.isascii() and " " not in r.path for op in mix.operations for r in op.requests)


def test_time_to_read_a_log_grows_with_its_lines_only(tmp_path):
    """Ten times the lines, half of their addresses different, take about ten times as long, not a
    hundred times.
    """
    few, many = (_seconds_to_read(tmp_path / "access.log.gz", lines) for lines in (5_000, 50_000))
    assert many < 30 * few


def _seconds_to_read(path, lines):
    line = LINE.format(request="GET /api/hotel/{}/?page={}", status=200, second=0) + "\n"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.writelines(line.format(i // 2, i // 2) for i in range(lines))
    started = time.process_time()
    result = read_access_log(path, templates=TEMPLATES, keep_times=True)
    assert [op.weight for op in result.operations] == [lines]
    return time.process_time() - started
