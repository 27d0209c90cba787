"""LAB_NGINX_CACHE=protected while the disk of its second lookup is not writable."""

import shutil
import time

import pytest

from lab.stack.native.supervision import wait_for
from tests.support.nginx_front import LIST, Backend, front

SETTINGS = {"LAB_NGINX_CACHE": "protected", "LAB_PROXY_TIMEOUT": "1"}


class Disk:
    """Replaces the folder with a file, so that even root cannot write there."""

    def __init__(self, folder):
        self._folder = folder / "cache-refreshes"

    def fails(self):
        shutil.rmtree(self._folder)
        self._folder.touch()

    def is_mended(self):
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


def _seen(client):
    answer = client.get(LIST)
    return answer.json()["version"], answer.headers["X-Cache-Status"]


def test_clients_get_backend_responses_until_the_disk_recovers(client, backend, disk):
    client.get(LIST)
    backend.version = 2
    disk.fails()
    wait_for(lambda: _seen(client) == (2, "EXPIRED"), seconds=5, what="The newest page")
    backend.version = 3
    answer = client.get(LIST)
    assert answer.json()["version"] == 3
    assert answer.headers["Cache-Control"] == "no-cache"
    disk.is_mended()
    wait_for(lambda: _seen(client) == (3, "HIT"), seconds=5, what="A page that is kept")


def test_cached_page_is_served_if_backend_fails_too(client, backend, disk):
    client.get(LIST)
    disk.fails()
    backend.stop()
    wait_for(lambda: _seen(client) == (1, "STALE"), seconds=5, what="The kept page")
    # Also after TTL and window.
    time.sleep(3.1)
    assert _seen(client) == (1, "STALE")


@pytest.mark.parametrize(
    ("status", "told"), [(500, "server_error"), (503, "unavailable"), (504, "timeout")]
)
def test_errors_are_in_the_error_format(client, backend, disk, status, told):
    disk.fails()
    wait_for(lambda: _seen(client) == (1, "MISS"), seconds=5, what="An answer past the disk")
    backend.status = status
    answer = client.get(LIST)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, told)
    assert answer.headers["Retry-After"] == "1"
