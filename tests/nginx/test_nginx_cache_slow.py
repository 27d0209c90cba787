"""LAB_NGINX_CACHE=protected on a slow machine: many cold pages, few workers, long builds.

Promise: if pages × time of a build ÷ workers is below Nginx's timeout, no request fails and each
page is built once. Beyond that, requests are refused, and still each page is built once.
"""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from ops import deadline

from tests.support.nginx_cases import run_parallel
from tests.support.nginx_front import Backend

TIMEOUT, BUILD, WORKERS = 4, 0.5, 2
# 3 s of builds per worker, and 10 s.
WITHIN, BEYOND = 12, 40
# The longest build that a worker allows for.
EXPECTED = deadline._MARGIN * BUILD


def _paths(count):
    return [f"/api/hotel/0190c6a5-0000-4000-8000-{number:012x}/" for number in range(count)]


def _read(client, path, until):
    """Request one page again and again, at least until it is there; return its responses."""
    responses = []
    while time.monotonic() < until or responses[-1].status_code != 200:
        assert time.monotonic() < until + 60, responses[-1]
        responses.append(client.get(path))
        time.sleep(0.3)
    return responses


def _case(pages, seconds):
    def read(client, _backend):
        until = time.monotonic() + seconds
        with ThreadPoolExecutor(pages) as pool:
            answers = pool.map(lambda path: _read(client, path, until), _paths(pages))
            return [response for responses in answers for response in responses]

    return read


def test_each_page_is_built_once_and_late_requests_are_refused(tmp_path):
    backends = {name: Backend().set_lifetimes(ttl=60) for name in ("within", "beyond")}
    for backend in backends.values():
        backend.limit_workers(WORKERS).delay = BUILD
    cases = {
        "within": (backends["within"], _case(WITHIN, 5)),
        "beyond": (backends["beyond"], _case(BEYOND, 14)),
    }
    settings = {"LAB_NGINX_CACHE": "protected", "LAB_PROXY_TIMEOUT": str(TIMEOUT)}
    with run_parallel(tmp_path, cases, **settings) as futures:
        within, beyond = (futures[name].result() for name in cases)
    for name, pages in (("within", WITHIN), ("beyond", BEYOND)):
        assert _check_builds(backends[name]) == set(_paths(pages))
    refused = _check_refusals(within, backends["within"])
    # A machine that lengthens the builds can leave the promise's condition.
    assert not refused or WITHIN * _longest(backends["within"]) / WORKERS >= TIMEOUT
    assert _check_refusals(beyond, backends["beyond"]), "nothing was refused, so the test is void"


def _longest(backend):
    return max(build.seconds for build in backend.timed_builds)


def _check_builds(backend):
    """Check that each page was built once, and return the pages. Nginx has no use for a page that a
    busy machine built in more time than its worker had expected, so that it came after the timeout.
    """
    late = [build for build in backend.timed_builds if build.seconds_late >= 0]
    # A shorter build can only be late because the worker should have refused it.
    assert all(build.seconds > EXPECTED for build in late), late
    in_time = Counter(build.path for build in backend.timed_builds if build not in late)
    assert set(in_time.values()) == {1}, (in_time.most_common(3), backend.timed_builds)
    return set(in_time)


def _check_refusals(responses, backend):
    """Return the requests without a page; each was refused, and none failed or timed out. After a
    longer build than expected, refusals come late too.
    """
    refused = [response for response in responses if response.status_code != 200]
    for response in refused:
        if response.status_code == 504 and _longest(backend) > EXPECTED:
            continue
        assert response.status_code == 503
        assert response.headers["Retry-After"] == "1"
        assert response.headers["X-Cache-Status"] == "REFUSED"
        assert response.json()["error"]["code"] == "overloaded"
    return refused
