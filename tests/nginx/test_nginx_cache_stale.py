"""LAB_NGINX_CACHE=protected: maximum age of pages in normal operation and during an outage."""

import time
from functools import partial

import pytest

from lab.stack.native.supervision import wait_for
from tests.support.nginx_cases import run_parallel
from tests.support.nginx_front import LIST, Backend, front
from tests.support.nginx_load import read_pages

TTL = 1
# Limit during an outage, counted from the end of TTL. The real backend uses 60.
ERROR = 5
# Nginx counts whole seconds, and the stale-while-revalidate window is one second.
PROMISE = TTL + 2


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


def _cache(answer):
    return answer.headers["X-Cache-Status"]


def _seen(client):
    answer = client.get(LIST)
    return answer.json()["version"], _cache(answer)


@pytest.mark.parametrize("answer", [0.02, 1.2])
def test_served_pages_are_not_older_than_the_limit(tmp_path, answer):
    def read(client, backend):
        client.get(LIST, headers={"Accept-Encoding": "identity"})
        backend.delay = answer
        return read_pages(client, backend, rate=60, seconds=8, every=1.7)

    orders = {"as sent": _backend(), "X-Accel-Expires first": _backend(reverse=True)}
    cases = {name: (backend, read) for name, backend in orders.items()}
    with run_parallel(tmp_path, cases, LAB_NGINX_CACHE="protected") as begun:
        for name in orders:
            _check_promise(begun[name].result(), answer)


def _check_promise(seen, answer):
    assert seen.failed == 0
    assert seen.statuses["HIT"] > 100
    # Clients do not wait for a refresh that finishes within its window; the headers may come in
    # either order.
    assert seen.statuses["STALE"] > 1
    assert max(seen.stale) <= PROMISE + answer


def test_304_renews_an_unchanged_page(client, backend):
    client.get(LIST)
    for _ in range(2):
        asked = len(backend.requests)
        wait_for(
            lambda asked=asked: client.get(LIST) and len(backend.requests) > asked,
            seconds=5,
            what="A refresh",
        )
        assert backend.requests[-1][2]["If-None-Match"] == '"v1"'
        assert _cache(client.get(LIST)) in ("HIT", "UPDATING")
    assert backend.builds == [1]


@pytest.mark.parametrize("status", [500, 503])
def test_error_is_returned_immediately_without_a_cached_page(client, backend, status):
    backend.status = status
    answer = client.get(LIST)
    assert (answer.status_code, answer.headers["Retry-After"]) == (status, "1")
    assert answer.json()["error"]["message"]
    assert _cache(answer) == "MISS"
    assert len(backend.requests) == 1


def _refuse(backend):
    backend.stop()


def _hang(backend):
    backend.delay = 3  # over LAB_PROXY_TIMEOUT


def _status(status):
    def answer(backend):
        backend.status = status

    return answer


OUTAGES = {
    "refused": (_refuse, 503, "unavailable"),
    "too slow": (_hang, 504, "timeout"),
    **{
        f"answers {status}": (_status(status), told, code)
        for status, told, code in [
            (500, 500, "server_error"),
            (502, 503, "unavailable"),
            (503, 503, "unavailable"),
            (504, 504, "timeout"),
        ]
    },
}


def _the_first_reader_after_an_idle_time_gets_the_newest_page(client, backend):
    client.get(LIST)
    backend.version = 2
    time.sleep(8)  # the idle time, far past TTL and window; an hour would give the same result
    assert _seen(client) == (2, "EXPIRED")


def _an_outage_hands_out_marked_pages_up_to_an_age_and_then_ends(
    begin, told, code, client, backend
):
    kept = time.time()
    client.get(LIST)
    begin(backend)
    wait_for(lambda: _cache(client.get(LIST)) == "STALE", seconds=6, what="A stale page")
    time.sleep(max(0, kept + PROMISE + 0.1 - time.time()))  # past TTL and window
    assert _seen(client) == (1, "STALE")

    wait_for(lambda: client.get(LIST).status_code != 200, seconds=20, what="The end of that age")
    assert time.time() - kept > ERROR
    answer = client.get(LIST)
    assert (answer.status_code, answer.json()["error"]["code"]) == (told, code)
    assert answer.headers["Retry-After"] == "1"
    assert _cache(answer) == "EXPIRED"

    backend.delay, backend.status, backend.version = 0, 200, 2
    if begin is _refuse:
        backend.start()
    wait_for(lambda: client.get(LIST).status_code == 200, seconds=5, what="The new page")
    assert _seen(client) == (2, "HIT")


def _the_age_of_an_outage_is_bounded(client, backend):
    """Counted from the last response: normal limit, stale-if-error, and an attempt's timeout."""
    client.get(LIST)
    backend.stop()
    begin, last = time.time(), 0.0
    while time.time() < begin + PROMISE + ERROR + 3:
        if client.get(LIST).status_code == 200:
            last = time.time()
        time.sleep(0.05)
    assert ERROR < last - begin <= PROMISE + ERROR


def _a_page_is_fresh_soon_after_the_backend_is_back(client, backend):
    client.get(LIST)
    backend.status, backend.version = 503, 2
    time.sleep(PROMISE + 0.1)  # past TTL and window
    assert _seen(client) == (1, "STALE")
    backend.status, back = 200, time.time()
    wait_for(lambda: _seen(client)[0] == 2, seconds=5, what="The new page")
    # A failed refresh is shared for a second; Nginx counts whole seconds.
    assert time.time() - back < 2.5


LONG = {
    "the first reader after an idle time gets the newest page": (
        _the_first_reader_after_an_idle_time_gets_the_newest_page
    ),
    "the age of an outage is bounded": _the_age_of_an_outage_is_bounded,
    "a page is fresh soon after the backend is back": (
        _a_page_is_fresh_soon_after_the_backend_is_back
    ),
    **{
        f"an outage ({name}) hands out marked pages up to an age and then ends": partial(
            _an_outage_hands_out_marked_pages_up_to_an_age_and_then_ends, *outage
        )
        for name, outage in OUTAGES.items()
    },
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    cases = {name: (_backend(), case) for name, case in LONG.items()}
    with run_parallel(tmp_path_factory.mktemp("long"), cases, **SETTINGS) as begun:
        yield begun


@pytest.mark.parametrize("case", LONG)
def test_long_running_case_passes(begun, case):
    begun[case].result()
