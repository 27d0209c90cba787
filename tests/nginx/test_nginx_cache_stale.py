"""LAB_NGINX_CACHE=protected: maximum age of pages in normal operation and during an outage."""

import time
from functools import partial

import pytest

from load_lab.stack.native.supervision import wait_for
from tests.support.nginx_cases import run_parallel
from tests.support.nginx_front import LIST, Backend, front
from tests.support.nginx_load import read_pages

TTL = 1
# Limit during an outage, counted from the end of TTL. The real backend uses 60.
ERROR = 5
# Nginx counts whole seconds, and the stale-while-revalidate window is one second.
MAX_AGE = TTL + 2


SETTINGS = {"LAB_NGINX_CACHE": "protected", "LAB_PROXY_TIMEOUT": "1"}


def _backend(**more):
    return Backend().set_lifetimes(ttl=TTL, error=ERROR, **more)


@pytest.fixture
def backend():
    return _backend()


@pytest.fixture
def client(tmp_path, backend):
    with front(tmp_path, backend, **SETTINGS) as client:
        yield client


def _cache(response):
    return response.headers["X-Cache-Status"]


def _version_and_status(client):
    response = client.get(LIST)
    return response.json()["version"], _cache(response)


@pytest.mark.parametrize("delay", [0.02, 1.2])
def test_served_pages_are_not_older_than_the_limit(tmp_path, delay):
    def read(client, backend):
        client.get(LIST, headers={"Accept-Encoding": "identity"})
        backend.delay = delay
        return read_pages(client, backend, rate=60, seconds=8, every=1.7)

    orders = {"as sent": _backend(), "X-Accel-Expires first": _backend(reverse=True)}
    cases = {name: (backend, read) for name, backend in orders.items()}
    with run_parallel(tmp_path, cases, LAB_NGINX_CACHE="protected") as futures:
        for name in orders:
            _check_age_limit(futures[name].result(), delay)


def _check_age_limit(result, delay):
    assert result.failed == 0
    assert result.statuses["HIT"] > 100
    # Clients do not wait for a refresh that finishes within its window; the headers may come in
    # either order.
    assert result.statuses["STALE"] > 1
    assert max(result.stale) <= MAX_AGE + delay


def test_304_renews_an_unchanged_page(client, backend):
    client.get(LIST)
    for _ in range(2):
        count = len(backend.requests)
        wait_for(
            lambda count=count: client.get(LIST) and len(backend.requests) > count,
            seconds=5,
            what="A refresh",
        )
        assert backend.requests[-1][2]["If-None-Match"] == '"v1"'
        assert _cache(client.get(LIST)) in ("HIT", "UPDATING")
    assert backend.builds == [1]


@pytest.mark.parametrize("status", [500, 503])
def test_error_is_returned_immediately_without_a_cached_page(client, backend, status):
    backend.status = status
    response = client.get(LIST)
    assert (response.status_code, response.headers["Retry-After"]) == (status, "1")
    assert response.json()["error"]["message"]
    assert _cache(response) == "MISS"
    assert len(backend.requests) == 1


def _refuse(backend):
    backend.stop()


def _hang(backend):
    backend.delay = 3  # over LAB_PROXY_TIMEOUT


def _status(status):
    def set_status(backend):
        backend.status = status

    return set_status


OUTAGES = {
    "refused": (_refuse, 503, "unavailable"),
    "too slow": (_hang, 504, "timeout"),
    **{
        f"answers {status}": (_status(status), expected, code)
        for status, expected, code in [
            (500, 500, "server_error"),
            (502, 503, "unavailable"),
            (503, 503, "unavailable"),
            (504, 504, "timeout"),
        ]
    },
}


def _check_idle_time(client, backend):
    client.get(LIST)
    backend.version = 2
    time.sleep(8)  # the idle time, far past TTL and window; an hour would give the same result
    assert _version_and_status(client) == (2, "EXPIRED")


def _check_outage(begin, status, code, client, backend):
    start = time.time()
    client.get(LIST)
    begin(backend)
    wait_for(lambda: _cache(client.get(LIST)) == "STALE", seconds=6, what="A stale page")
    time.sleep(max(0, start + MAX_AGE + 0.1 - time.time()))  # past TTL and window
    assert _version_and_status(client) == (1, "STALE")

    wait_for(lambda: client.get(LIST).status_code != 200, seconds=20, what="The end of that age")
    assert time.time() - start > ERROR
    response = client.get(LIST)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert response.headers["Retry-After"] == "1"
    assert _cache(response) == "EXPIRED"

    backend.delay, backend.status, backend.version = 0, 200, 2
    if begin is _refuse:
        backend.start()
    wait_for(lambda: client.get(LIST).status_code == 200, seconds=5, what="The new page")
    assert _version_and_status(client) == (2, "HIT")


def _check_outage_age(client, backend):
    """Counted from the last response: normal limit, stale-if-error, and an attempt's timeout."""
    client.get(LIST)
    backend.stop()
    begin, last = time.time(), 0.0
    while time.time() < begin + MAX_AGE + ERROR + 3:
        if client.get(LIST).status_code == 200:
            last = time.time()
        time.sleep(0.05)
    assert ERROR < last - begin <= MAX_AGE + ERROR


def _check_recovery(client, backend):
    client.get(LIST)
    backend.status, backend.version = 503, 2
    time.sleep(MAX_AGE + 0.1)  # past TTL and window
    assert _version_and_status(client) == (1, "STALE")
    backend.status, recovery = 200, time.time()
    wait_for(lambda: _version_and_status(client)[0] == 2, seconds=5, what="The new page")
    # A failed refresh is shared for a second; Nginx counts whole seconds.
    assert time.time() - recovery < 2.5


CASES = {
    "idle time": _check_idle_time,
    "outage age": _check_outage_age,
    "recovery": _check_recovery,
    **{f"outage ({name})": partial(_check_outage, *outage) for name, outage in OUTAGES.items()},
}


@pytest.fixture(scope="module")
def futures(tmp_path_factory):
    cases = {name: (_backend(), case) for name, case in CASES.items()}
    with run_parallel(tmp_path_factory.mktemp("long"), cases, **SETTINGS) as futures:
        yield futures


@pytest.mark.parametrize("case", CASES)
def test_long_running_case_passes(futures, case):
    futures[case].result()
