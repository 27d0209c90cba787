"""Every combination of Nginx' switches."""

import http.client
import subprocess
from itertools import product

import pytest

from lab.engine.native.programs import library_env
from tests.nginx_front import DETAIL, LIST, Backend, free_port, front, nginx, render_front


@pytest.mark.parametrize(
    ("cache", "shed"), list(product(("off", "basic", "protected"), ("off", "on")))
)
def test_every_combination_is_valid(tmp_path, cache, shed):
    render_front(tmp_path, 1, LAB_NGINX_CACHE=cache, LAB_SHED=shed)
    done = subprocess.run(
        nginx(tmp_path, "-t"), env=library_env(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr


def _status_from(address, port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, source_address=(address, 0))
    connection.request("GET", path, headers={"If-None-Match": '"mine"'})
    status = connection.getresponse().status
    connection.close()
    return status


def test_nginx_refreshes_through_a_listener_on_every_address_that_is_shut_to_others(tmp_path):
    """A container's listener is bound to 0.0.0.0."""
    port, backend = free_port(), Backend().lives(ttl=60)
    settings = {"LAB_NGINX_CACHE": "protected", "LAB_NGINX_STATUS_LISTEN": f"0.0.0.0:{port}"}
    with front(tmp_path, backend, **settings) as client:
        for path in (LIST, DETAIL):
            answers = [client.get(path).headers["X-Cache-Status"] for _ in range(2)]
            assert answers == ["MISS", "HIT"]
        assert _status_from("127.0.0.1", port, LIST) == 200
        assert _status_from("127.0.0.2", port, LIST) == 403
