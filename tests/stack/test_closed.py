"""A running stack rejects access to its internal routes, files and services."""

import os
import socket

import httpx
import psycopg
import pytest
import redis

# Internal paths in different spellings.
CLOSED = (
    *("/healthz", "/readyz", "/metrics", "/lab/settings", "/lab/latency", "/lab/"),
    *("/admin/", "/stub_status", "/settings", "/static/../lab/settings", "/workbench/hello/"),
    *("//lab/settings", "/./lab/settings", "/api/../lab/settings", "/lab%2fsettings"),
    *("/%6cab/settings", "/api/%2e%2e/lab/settings", "/lab%252fsettings", "/lab;x/settings"),
    *("/healthz/", "/%68ealthz", "/api/..%2fhealthz", "/static/config/settings.py"),
    *("/static/%252e%252e/config/settings.py", "/static/..;/config/settings.py"),
)


@pytest.mark.parametrize("path", CLOSED)
def test_internal_routes_are_unreachable_through_nginx(stack, path):
    """Send the lab's token, which opens these routes at the server's port."""
    response = _raw(stack.settings().LAB_HTTP_PORT, path, f"X-Lab-Token: {stack.token()}")
    assert response.startswith("HTTP/1.1 404 "), response[:300]
    assert "LAB_" not in response


@pytest.mark.parametrize("up", ["..", "%2e%2e", "%2E.", "..%2f..", "....//", "%5c..%5c"])
def test_path_traversal_out_of_static_files_is_rejected(stack, up):
    response = _raw(stack.settings().LAB_HTTP_PORT, f"/static/{up}/config/settings.py")
    assert response.split()[1] in ("400", "404"), response[:300]
    assert "SECRET_KEY" not in response


@pytest.mark.parametrize(
    "header",
    [
        *("SCRIPT_NAME: /api", "PATH_INFO: /lab/settings", "X-Original-URL: /lab/settings"),
        *("X-Rewrite-URL: /lab/settings", "X-Accel-Redirect: /lab/settings"),
    ],
)
def test_headers_cannot_change_the_route(stack, header):
    response = _raw(stack.settings().LAB_HTTP_PORT, "/api/hotel/", header)
    assert response.startswith("HTTP/1.1 200 "), response[:300]
    assert "LAB_" not in response


def _raw(port, path, *headers):
    """Send one request with the path in exactly this spelling and return the raw response."""
    lines = [f"GET {path} HTTP/1.1", "Host: lab", "Connection: close", *headers, "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall("\r\n".join(lines).encode())
        with connection.makefile("rb") as reader:
            return reader.read().decode()


def test_internal_routes_require_the_lab_token(stack):
    url = f"{stack.settings().backend_url}/lab/settings"
    for headers in ({}, {"X-Lab-Token": ""}, {"X-Lab-Token": "x" * 64}):
        assert httpx.get(url, headers=headers).status_code == 404
    assert httpx.get(url, headers={"X-Lab-Token": stack.token()}).status_code == 200


@pytest.mark.parametrize("password", [None, "", "postgres", "wrong"])
def test_redis_requires_its_password(stack, password):
    with (
        redis.Redis(port=stack.settings().LAB_REDIS_PORT, password=password) as client,
        pytest.raises((redis.AuthenticationError, redis.ResponseError)),
    ):
        client.info()


@pytest.mark.parametrize("user", ["postgres", "hotel", "lab_monitor"])
@pytest.mark.parametrize("password", ["", "postgres", "hotel"])
def test_postgres_requires_a_password_from_every_user(stack, user, password):
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(
            host="127.0.0.1",
            port=stack.settings().LAB_POSTGRES_PORT,
            user=user,
            dbname="postgres",
            password=password,
        )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/api/v1/admin/tsdb/delete_series?match[]=up", "admin APIs disabled"),
        ("/api/v1/admin/tsdb/snapshot", "admin APIs disabled"),
        *(("/-/reload", "not enabled"), ("/-/quit", "not enabled")),
    ],
)
def test_prometheus_rejects_admin_requests(stack, path, message):
    response = httpx.post(f"{stack.settings().prometheus_url}{path}")
    assert response.status_code >= 400
    assert message in response.text


def test_prometheus_allows_no_cross_origin_reads(stack):
    url = f"{stack.settings().prometheus_url}/api/v1/query?query=up"
    response = httpx.get(url, headers={"Origin": "https://page.example"})
    assert response.status_code == 200
    assert "Access-Control-Allow-Origin" not in response.headers


def test_toxiproxy_rejects_browsers(stack):
    """Otherwise a web page could control it through its visitor's browser."""
    url = f"http://127.0.0.1:{stack.settings().LAB_TOXIPROXY_PORT}/proxies"
    assert httpx.get(url, headers={"User-Agent": "Mozilla/5.0"}).status_code == 403
    assert httpx.get(url).status_code == 200


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user for a moment")
def test_other_users_cannot_access_supervisor_socket_and_secrets(stack):
    path = str(stack._state.socket)
    assert _is_denied_to_nobody(lambda: socket.socket(socket.AF_UNIX).connect(path))
    for name in ("lab_token", "redis.acl", "redis-exporter.json"):
        assert _is_denied_to_nobody((stack._state.secrets / name).read_text)
    # A file that is not secret shows whether another user can reach the folder at all.
    if stack._state.settings.exists() and _is_denied_to_nobody(stack._state.settings.read_text):
        pytest.skip("another user can't enter the clone at all, so it can't reach them either")


def test_other_users_cannot_redirect_the_postgres_configuration(stack):
    path = stack._state.postgres_configuration
    assert stack.sql("postgres", "SHOW config_file") == [str(path)]
    for each in (path, path.parent):
        status = each.lstat()
        assert (status.st_uid, status.st_mode & 0o022) == (os.getuid(), 0)


def _is_denied_to_nobody(action):
    """Return whether the user `nobody` is denied `action`.

    Fork instead of starting a program, which that user may be unable to read.
    """
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            action()
        except PermissionError:
            os._exit(13)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 13


def test_nginx_hides_its_version(stack):
    for path in ("/api/hotel/", "/none", "/api/%"):
        response = _raw(stack.settings().LAB_HTTP_PORT, path)
        assert "server: nginx\r\n" in response.lower()
