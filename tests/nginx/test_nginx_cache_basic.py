"""LAB_NGINX_CACHE=basic: the article's configuration block and each of its faults."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from load_lab.stack.native.supervision import wait_for
from tests.support.nginx_front import DETAIL, LIST, Backend, front
from tests.support.nginx_load import read_pages


@pytest.fixture
def backend():
    return Backend()


@pytest.fixture
def client(tmp_path, backend):
    with front(tmp_path, backend, LAB_NGINX_CACHE="basic") as client:
        yield client


def _cache(response):
    return response.headers.get("X-Cache-Status")


@pytest.mark.parametrize("path", [LIST, DETAIL])
def test_second_client_gets_the_cached_page(client, backend, path):
    assert [_cache(client.get(path)) for _ in range(3)] == ["MISS", "HIT", "HIT"]
    assert len(backend.requests) == 1


def test_fault_404_is_cached(client, backend):
    backend.status = 404
    client.get(DETAIL)
    backend.status = 200
    assert client.get(DETAIL).status_code == 404
    assert len(backend.requests) == 1


def test_fault_every_query_string_is_cached_separately(client, backend):
    for number in range(5):
        assert _cache(client.get(f"{LIST}?nobody_reads_this={number}")) == "MISS"
    assert len(backend.requests) == 5


def test_fault_encoding_is_not_part_of_the_key(client, backend):
    """The backend's Vary header compensates, but each spelling gets a separate page."""
    backend.headers = [("Vary", "Accept-Encoding")]
    for spelling in ("gzip", "gzip, br", "br, gzip"):
        assert _cache(client.get(LIST, headers={"Accept-Encoding": spelling})) == "MISS"


def test_fault_max_age_of_another_layer_overrides_15_minutes(client, backend):
    backend.headers = [("Cache-Control", "max-age=1")]
    client.get(LIST)
    backend.version = 2
    wait_for(lambda: client.get(LIST).json()["version"] == 2, seconds=5, what="The end of max-age")


def test_fault_cache_control_of_the_backend_reaches_clients(client, backend):
    backend.headers = [("Cache-Control", "max-age=600")]
    assert client.get(LIST).headers["Cache-Control"] == "max-age=600"


def test_fault_client_chooses_the_host_of_the_cached_page(client, backend):
    client.get(LIST, headers={"Host": "evil.example"})
    assert backend.requests[0][2]["Host"] == "evil.example"
    assert _cache(client.get(LIST)) == "HIT"


def test_fault_backend_errors_lack_the_cache_status(client, backend):
    backend.status = 503
    response = client.get(LIST)
    assert (response.status_code, _cache(response)) == (503, None)


def test_fault_cold_page_is_fetched_by_all_clients_at_once(client, backend):
    backend.delay = 0.5
    read_pages(client, backend, rate=50, seconds=1, every=60)
    assert backend.max_in_flight > 10


def test_fault_page_served_during_a_refresh_has_unlimited_age(client, backend):
    backend.headers = [("Cache-Control", "max-age=1")]
    client.get(LIST)
    backend.version, backend.delay = 2, 1.0
    time.sleep(3)  # the time without requests
    with ThreadPoolExecutor() as pool:
        first = pool.submit(client.get, LIST)
        wait_for(lambda: len(backend.requests) == 2, seconds=5, what="The refresh")
        second = client.get(LIST)
        assert (_cache(second), second.json()["version"]) == ("UPDATING", 1)
        assert (_cache(first.result()), first.result().json()["version"]) == ("EXPIRED", 2)


def test_fault_stale_pages_are_served_indefinitely_in_an_outage(client, backend):
    backend.headers = [("Cache-Control", "max-age=1, stale-if-error=1")]
    client.get(LIST)
    backend.status = 503
    wait_for(lambda: _cache(client.get(LIST)) == "STALE", seconds=5, what="A stale page")
    time.sleep(3)  # past every limit in the header
    assert _cache(client.get(LIST)) == "STALE"


def test_bookings_are_never_cached(client, backend):
    for _ in range(2):
        assert _cache(client.post("/api/booking/", json={})) is None
    assert len(backend.requests) == 2
