"""Nginx in front of the running stack."""

import json
import subprocess
from uuid import uuid4

import httpx
import pytest

from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.render import render
from load_lab.stack.native.supervision import wait_for
from tests.support.nginx_front import raw

CLOSED = (
    *(
        "/healthz",
        "/readyz",
        "/metrics",
        "/lab/settings",
        "/ws",
        "/async",
        "/lab/latency",
        "/lab/",
        "/lab/x",
    ),
    # Through the routes of the second server.
    *("/async/../lab/settings", "/async/%2e%2e/lab/latency"),
)
# Unknown routes: the backend or the second server returns the 404.
UNKNOWN = ("/async/lab/settings", "/async/lab/latency")


@pytest.fixture(scope="module")
def url(stack):
    return stack.settings().target_url


def test_template_with_unknown_variable_is_not_rendered():
    assert render("a ${LAB_X} $host", {"LAB_X": "b"}) == "a b $host"
    with pytest.raises(KeyError):
        render("${LAB_UNKNOWN}", {})


def test_rendered_configuration_is_valid(stack):
    result = subprocess.run(
        [
            str(require("nginx")),
            "-t",
            "-e",
            "/dev/stderr",
            "-c",
            str(stack._state.run / "nginx.conf"),
        ],
        env=library_env(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("cache", "shed"), [("basic", "off"), ("protected", "on"), ("off", "on"), ("off", "off")]
)
def test_changed_settings_show_in_responses(lab, stack, url, cache, shed):
    assert lab("set", f"LAB_NGINX_CACHE={cache}", f"LAB_SHED={shed}").code == 0
    has_status = cache != "off"
    wait_for(
        lambda: ("X-Cache-Status" in httpx.get(f"{url}/api/hotel/").headers) is has_status,
        seconds=10,
        what="The new setting",
    )
    response = httpx.get(f"{url}/api/hotel/")
    assert (response.status_code, len(response.json())) == (200, 4)
    if cache == "basic":
        assert response.headers["X-Cache-Status"] == "HIT"
        _check_server_name_is_not_cached(url, stack)
    if cache == "protected":
        assert response.headers["Cache-Control"] == "no-cache"
        assert "X-Accel-Expires" not in response.headers


def _check_server_name_is_not_cached(url, stack):
    """Check that the server's name goes only to the lab's token, not to the page's next client."""
    page = f"{url}/api/hotel/?{uuid4()}"
    response = httpx.get(page, headers={"X-Lab-Token": stack.token()})
    assert response.headers["X-Lab-Server"] == stack.settings().LAB_SERVER
    assert "X-Accel-Expires" not in response.headers
    after = httpx.get(page)
    assert "X-Lab-Server" not in after.headers
    assert after.headers["X-Cache-Status"] == "MISS"


def test_nginx_serves_the_api(url):
    assert len(httpx.get(f"{url}/api/hotel/").json()) == 4


@pytest.mark.parametrize("path", [*CLOSED, *UNKNOWN])
def test_internal_routes_of_the_backend_return_404(url, stack, path):
    with httpx.Client(base_url=url) as client:
        head, _, body = raw(client, path, f"X-Lab-Token: {stack.token()}").partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 404 ")
    assert json.loads(body)["error"]["code"] == "not_found"
    assert "\r\nServer: nginx\r\n" in head
    # Every response of Django has this header.
    assert ("Cross-Origin-Opener-Policy" in head) == (path in UNKNOWN)


def test_body_over_the_limit_returns_413_in_error_format(url):
    response = httpx.post(f"{url}/api/booking/", content=b"x" * 70_000)
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "too_large"


@pytest.fixture
def log_entries(stack):
    """Return a function that returns the access log's entries since the fixture's start."""
    log = stack._state.logs / "nginx-access.log"
    size = log.stat().st_size

    def entries():
        return [json.loads(line) for line in log.read_bytes()[size:].decode("utf-8").splitlines()]

    return entries


def test_access_log_is_json_with_timings_and_cache_status(url, log_entries):
    httpx.get(f"{url}/api/hotel/?q=%22quote")

    def list_entries():
        return [entry for entry in log_entries() if entry["path"] == "/api/hotel/"]

    wait_for(list_entries, seconds=5, what="The access log's line")
    entry = list_entries()[0]
    assert entry["status"] == 200
    assert 0 <= float(entry["upstream_response_time"]) <= entry["request_time"] + 0.002
    assert set(entry) >= {"upstream_connect_time", "upstream_status", "cache_status", "bytes"}


def test_access_log_stays_json_with_any_bytes_in_a_path(url, log_entries):
    for path in ("%FF%FE", "%C3%A9", "%22%5C%0A"):
        assert httpx.get(f"{url}/api/hotel/{path}/").status_code == 404

    # Nginx's workers write lines in any order, and a line of an earlier test may be among them.
    def has_both_paths():
        paths = [entry["path"] for entry in log_entries()]
        return paths.count("not ASCII") == 2 and '/api/hotel/"\\\n/' in paths

    wait_for(has_both_paths, seconds=5, what="The access log's lines")


def test_status_page_has_a_separate_port(url, stack):
    port = stack.settings().LAB_NGINX_STATUS_PORT
    assert "Active connections" in httpx.get(f"http://127.0.0.1:{port}/stub_status").text
    assert httpx.get(f"{url}/stub_status").status_code == 404
