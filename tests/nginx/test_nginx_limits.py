"""Nginx's limits: rate of bookings, and concurrent requests to the backend (load shedding)."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from load_lab.stack.native.supervision import wait_for
from tests.support.nginx_front import LIST, Backend, front

BOOKING = "/api/booking/"
CONNECTIONS = 32


@pytest.fixture
def backend():
    backend = Backend().set_lifetimes()
    yield backend
    backend.delay = 0


def _statuses(client, requests, method, path):
    with ThreadPoolExecutor(requests) as pool:
        responses = list(pool.map(lambda _: client.request(method, path), range(requests)))
    return responses, Counter(response.status_code for response in responses)


def test_bookings_beyond_the_rate_return_429_in_error_format(tmp_path, backend):
    settings = {"LAB_NGINX_CACHE": "protected", "LAB_NGINX_POST_RATE": "5"}
    with front(tmp_path, backend, **settings) as client:
        responses = [client.post(BOOKING, json={}) for _ in range(20)]
        rejections = [response for response in responses if response.status_code == 429]
        # Accepted: a burst of one second, the current request, and a few during the test.
        assert 10 <= len(rejections) <= 14
        assert rejections[0].json()["error"]["code"] == "too_many_requests"
        assert rejections[0].headers["Retry-After"] == "1"
        wait_for(lambda: client.post(BOOKING).status_code == 200, seconds=3, what="A booking")


@pytest.mark.parametrize(("cache", "method"), [("protected", "GET"), ("off", "POST")])
def test_rate_limit_applies_only_to_bookings(tmp_path, backend, cache, method):
    path = BOOKING if method == "POST" else LIST
    with front(tmp_path, backend, LAB_NGINX_CACHE=cache, LAB_NGINX_POST_RATE="1") as client:
        responses = [client.request(method, path) for _ in range(30)]
        assert {response.status_code for response in responses} == {200}
        assert {client.get(BOOKING).status_code for _ in range(5)} == {200}


def test_shedding_rejects_excess_requests_immediately(tmp_path, backend):
    backend.delay = 2
    with front(tmp_path, backend, LAB_SHED="on") as client:
        begin, pool = time.time(), ThreadPoolExecutor(CONNECTIONS)
        bookings = [pool.submit(client.post, BOOKING) for _ in range(CONNECTIONS)]
        wait_for(lambda: backend.in_flight == CONNECTIONS, seconds=2, what="A full backend")
        responses = [client.post(BOOKING) for _ in range(20)]
        assert time.time() - begin < 2, "rejected requests waited for accepted ones"
        assert {response.status_code for response in responses} == {503}
        assert responses[0].json()["error"]["code"] == "unavailable"
        assert responses[0].headers["Retry-After"] == "1"
        assert {request.result().status_code for request in bookings} == {200}
        assert client.post(BOOKING).status_code == 200
    assert backend.max_in_flight == CONNECTIONS


def test_excess_requests_wait_without_shedding(tmp_path, backend):
    # Long enough for all requests to arrive during it, even on a busy machine.
    backend.delay = 2
    with front(tmp_path, backend) as client:
        _, statuses = _statuses(client, 90, "POST", BOOKING)
    assert statuses == {200: 90}
    assert backend.max_in_flight > CONNECTIONS


def test_requests_for_cached_pages_are_not_shed(tmp_path, backend):
    with front(tmp_path, backend, LAB_SHED="on", LAB_NGINX_CACHE="protected") as client:
        assert client.get(LIST).headers["X-Cache-Status"] == "MISS"
        backend.delay = 4.5
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            for _ in range(CONNECTIONS):
                pool.submit(client.post, BOOKING)
            wait_for(lambda: backend.in_flight == CONNECTIONS, seconds=2, what="A full backend")
            counts = Counter()
            while backend.in_flight >= CONNECTIONS:
                response = client.get(LIST)
                counts[response.status_code, response.headers["X-Cache-Status"]] += 1
                time.sleep(0.01)
    assert {status for status, _ in counts} == {200}
    # Only the refresh may exceed the limit; otherwise every client would get an old page.
    assert backend.max_in_flight == CONNECTIONS + 1


@pytest.mark.parametrize("path", [BOOKING, "/ws/hotel/"])
def test_backend_receives_the_time_of_forwarding(tmp_path, backend, path):
    with front(tmp_path, backend) as client:
        before = time.time()
        client.post(path, headers={"X-Request-Start": "1.000"})
        timestamp = backend.requests[-1][2]["X-Request-Start"]
    assert before - 0.1 <= float(timestamp) <= time.time() + 0.1
    assert len(timestamp.partition(".")[2]) == 3
