"""Every combination of Nginx's settings, and changes between them."""

import http.client
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import httpx
import pytest
from lab_settings.kinds import SecondServer

from load_lab.stack.native.program_paths import library_env
from load_lab.stack.native.supervision import wait_for
from tests.support.nginx_front import DETAIL, LIST, Backend, front, nginx, render_front
from tests.support.ports import free_port


@pytest.mark.parametrize(
    ("cache", "shed", "second_server"),
    list(product(("off", "basic", "protected"), ("off", "on"), SecondServer)),
)
def test_every_combination_of_settings_is_valid(tmp_path, cache, shed, second_server):
    render_front(tmp_path, 1, LAB_NGINX_CACHE=cache, LAB_SHED=shed, LAB_SECOND_SERVER=second_server)
    result = subprocess.run(
        nginx(tmp_path, "-t"), env=library_env(), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "warn" not in result.stderr


def _status_from(address, port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, source_address=(address, 0))
    connection.request("GET", path, headers={"If-None-Match": '"mine"'})
    status = connection.getresponse().status
    connection.close()
    return status


def test_refresh_listener_on_all_addresses_rejects_other_clients(tmp_path):
    """In a container the listener is bound to 0.0.0.0."""
    port, backend = free_port(), Backend().set_lifetimes(ttl=60)
    settings = {"LAB_NGINX_CACHE": "protected", "LAB_NGINX_STATUS_LISTEN": f"0.0.0.0:{port}"}
    with front(tmp_path, backend, **settings) as client:
        for path in (LIST, DETAIL):
            statuses = [client.get(path).headers["X-Cache-Status"] for _ in range(2)]
            assert statuses == ["MISS", "HIT"]
        assert _status_from("127.0.0.1", port, LIST) == 200
        assert _status_from("127.0.0.2", port, LIST) == 403


def _reload(folder, old, new):
    config = folder / "nginx.conf"
    text = config.read_text().replace(f"cache/{old}/", f"cache/{new}/")
    config.write_text(text.replace(f"internal-*{old}*", f"internal-*{new}*"))
    _send_hup(folder)


def _send_hup(folder):
    os.kill(int((folder / "nginx.pid").read_text()), signal.SIGHUP)


def test_open_websocket_does_not_keep_an_old_worker_alive(tmp_path):
    backend = Backend()
    with front(tmp_path, backend, LAB_PROXY_TIMEOUT="1") as client, ThreadPoolExecutor() as pool:
        # To Nginx it is a connection without a response yet.
        backend.delay = 6
        request = pool.submit(client.get, "/ws/hotel/")
        wait_for(lambda: backend.in_flight, seconds=2, what="The socket")
        _send_hup(tmp_path)
        with pytest.raises(httpx.RemoteProtocolError):
            request.result()


@pytest.mark.parametrize("new", ["off", "basic"])
def test_waiting_requests_succeed_when_protected_cache_is_disabled(tmp_path, new):
    backend = Backend().set_lifetimes()
    # A worker looks up how long a cached header is, here that of the 404, then opens the file. If
    # another one stores the longer one of the 200 in between, it logs this and fetches the page.
    allowed = "has too long header"
    with front(tmp_path, backend, allowed=allowed, LAB_NGINX_CACHE="protected") as client:
        # The first fetch returns 404, for its client alone: the others are sent again.
        backend.status, backend.delay = 404, 1.5
        with ThreadPoolExecutor() as pool:
            first = pool.submit(client.get, LIST)
            wait_for(lambda: backend.in_flight, seconds=2, what="The first fetch")
            others = [pool.submit(client.get, LIST) for _ in range(8)]
            backend.status, backend.delay = 200, 0
            _reload(tmp_path, "protected", new)
            assert first.result().status_code == 404
            assert {request.result().status_code for request in others} == {200}
