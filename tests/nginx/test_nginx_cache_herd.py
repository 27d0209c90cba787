"""LAB_NGINX_CACHE=protected: many clients request one page; the backend renders it once."""

from collections import Counter
from functools import partial

import httpx
import pytest

from tests.support.nginx_cases import run_parallel
from tests.support.nginx_front import LIST, Backend, front
from tests.support.nginx_load import read_pages

SLOW = 1.5


@pytest.fixture
def backend():
    return Backend().set_lifetimes()


@pytest.fixture
def client(tmp_path, backend):
    with front(tmp_path, backend, LAB_NGINX_CACHE="protected") as client:
        client.headers["Accept-Encoding"] = "identity"
        yield client


def test_cold_page_is_rendered_once(client, backend):
    backend.delay = SLOW
    result = read_pages(client, backend, rate=100, seconds=1, every=60)
    assert backend.builds == [1]
    assert result.failed == 0


def test_changed_page_is_rendered_once_despite_slow_refresh(client, backend):
    client.get(LIST)
    backend.delay = SLOW
    result = read_pages(client, backend, rate=200, seconds=8, every=2.2)
    assert result.failed == 0
    assert result.statuses["EXPIRED"] > 20, "no client waited, so the test is void"
    # One refresh at a time, and none for a version that is already cached.
    assert backend.max_in_flight == 1
    assert max(Counter(backend.builds).values()) == 1


def test_unchanged_page_is_revalidated_once_despite_slow_304(client, backend):
    client.get(LIST)
    backend.delay = SLOW
    result = read_pages(client, backend, rate=200, seconds=8, every=60)
    assert result.failed == 0
    assert sum(wait > 0.1 for wait in result.waits) > 20, "no client waited, so the test is void"
    assert backend.max_in_flight == 1
    assert backend.builds == [1]
    assert len(backend.requests) <= 5


def test_failed_refresh_serves_the_cached_page_to_all_clients(client, backend):
    client.get(LIST)
    backend.delay, backend.status = SLOW, 503
    result = read_pages(client, backend, rate=50, seconds=6, every=60)
    assert result.failed == 0
    assert result.statuses["STALE"] > 50
    # Each client waits for at most one attempt.
    assert max(result.waits) < 2 * SLOW + 0.5
    assert backend.max_in_flight == 1


def test_disconnected_client_does_not_abort_the_refresh(client, backend):
    backend.delay = SLOW
    with pytest.raises(httpx.ReadTimeout):
        client.get(LIST, timeout=0.3)
    assert client.get(LIST).status_code == 200
    assert client.get(LIST).headers["X-Cache-Status"] == "HIT"
    assert backend.builds == [1]


def test_clients_do_not_queue_for_uncacheable_responses(tmp_path):
    backends = {status: Backend().set_lifetimes() for status in (404, 500, 503)}
    for status, backend in backends.items():
        backend.status, backend.delay = status, 0.02
    read = partial(read_pages, rate=50, seconds=4, every=60)
    cases = {str(status): (backend, read) for status, backend in backends.items()}
    with run_parallel(tmp_path, cases, LAB_NGINX_CACHE="protected") as futures:
        for status, backend in backends.items():
            _check_no_queue(futures[str(status)].result(), backend)


def _check_no_queue(result, backend):
    waits = sorted(result.waits)
    # Only requests that arrive during the first request to the backend wait.
    assert waits[len(waits) // 2] < 0.3
    assert waits[-1] < 2
    # The response is not cached for later requests.
    assert len(backend.requests) > 100
