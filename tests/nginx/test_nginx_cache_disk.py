"""LAB_NGINX_CACHE=protected while the disk of its second lookup is not writable."""

import shutil
import time

import pytest

from load_lab.stack.native.supervision import wait_for
from tests.support.nginx_front import LIST, Backend, front

SETTINGS = {"LAB_NGINX_CACHE": "protected", "LAB_PROXY_TIMEOUT": "1"}


class Disk:
    """Replaces the folder with a file, so that even root cannot write there."""

    def __init__(self, folder):
        self._folder = folder / "cache-refreshes"

    def fail(self):
        shutil.rmtree(self._folder)
        self._folder.touch()

    def recover(self):
        self._folder.unlink()
        self._folder.mkdir()


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path)


@pytest.fixture
def backend():
    return Backend().set_lifetimes(ttl=1)


@pytest.fixture
def client(tmp_path, backend):
    with front(tmp_path, backend, allowed="cache-refreshes", **SETTINGS) as client:
        yield client


def _version_and_status(client):
    response = client.get(LIST)
    return response.json()["version"], response.headers["X-Cache-Status"]


def test_clients_get_backend_responses_until_the_disk_recovers(client, backend, disk):
    client.get(LIST)
    backend.version = 2
    disk.fail()
    wait_for(
        lambda: _version_and_status(client) == (2, "EXPIRED"), seconds=5, what="The newest page"
    )
    backend.version = 3
    response = client.get(LIST)
    assert response.json()["version"] == 3
    assert response.headers["Cache-Control"] == "no-cache"
    disk.recover()
    wait_for(lambda: _version_and_status(client) == (3, "HIT"), seconds=5, what="A cached page")


def test_cached_page_is_served_if_backend_fails_too(client, backend, disk):
    client.get(LIST)
    disk.fail()
    backend.stop()
    wait_for(lambda: _version_and_status(client) == (1, "STALE"), seconds=5, what="The cached page")
    # Also after TTL and window.
    time.sleep(3.1)
    assert _version_and_status(client) == (1, "STALE")


@pytest.mark.parametrize(
    ("status", "code"), [(500, "server_error"), (503, "unavailable"), (504, "timeout")]
)
def test_errors_are_in_the_error_format(client, backend, disk, status, code):
    disk.fail()
    wait_for(
        lambda: _version_and_status(client) == (1, "MISS"),
        seconds=5,
        what="A response without the disk",
    )
    backend.status = status
    response = client.get(LIST)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert response.headers["Retry-After"] == "1"
