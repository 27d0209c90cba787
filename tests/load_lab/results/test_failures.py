"""The failed requests of a load, by simulated counts."""

import pytest

from load_lab.diagnosis.reading import began_at_once, unloaded_status
from load_lab.metrics.plan import Plan, Stage
from load_lab.metrics.windows import Window
from load_lab.results.failures import advice, failure_results, failures_text
from load_lab.results.result import ErrorStart, FailureResult, Result

STARTED = 1000.0
RAMP = Plan((Stage(100, 0, 50),), "requests")
HOLD = Plan((Stage(100, 20, 20),), "requests")


def _series(first, count, seconds=30):
    """Return pushes of a counter that grows to `count`, from `first` seconds on."""
    return {STARTED + first + at: count * (at + 1) / seconds for at in range(seconds)}


def _labels(**labels):
    return frozenset(labels.items())


FAILED = {
    _labels(name="GET /items/", status="302"): _series(17.2, 300),
    _labels(name="GET /", status="302"): _series(18.2, 112),
    _labels(name="GET /", status="0", error_code="1212"): _series(40, 9),
}
REDIRECTS = {_labels(status="302", to="/login/"): _series(17, 400)}


def test_failures_have_their_answer_first_moment_and_operations():
    login, down = failure_results(FAILED, REDIRECTS, RAMP, STARTED)
    assert (login.status, login.detail, login.requests) == (302, "/login/", 412)
    assert login.operations == ["GET /items/", "GET /"]
    # The push has the second before it; the ramp rises by 0.5/s each second.
    assert (login.after, login.rate) == (16.2, 8.4)
    assert (down.status, down.detail, down.requests) == (0, "connection refused", 9)
    text = failures_text([login, down], 1300)
    assert text.startswith("302 to /login/: 412 of 1,300, from 8.4/s on (GET /items/, GET /)")
    assert text.endswith("no response (connection refused): 9 of 1,300, from 19.8/s on (GET /)")


def test_failures_of_a_constant_rate_have_their_second():
    (failure,) = failure_results(
        {_labels(name=f"GET /{n}/", status="500"): _series(9, 10) for n in range(5)},
        {},
        HOLD,
        STARTED,
    )
    text = failures_text([failure], 90)
    assert text == "500: 50 of 90, from 8 s on (GET /0/, GET /1/ and 3 more)"
    assert failure_results({}, {}, HOLD, STARTED) == []
    assert failures_text([], 90) == ""


def test_redirects_to_many_paths_name_the_most_frequent():
    paths = {"/login/": 60, "/elsewhere/": 40}
    redirects = {_labels(status="302", to=to): _series(1, n) for to, n in paths.items()}
    (failure,) = failure_results(
        {_labels(name="GET /", status="302"): _series(1, 100)}, redirects, None, STARTED
    )
    assert failure.detail == "/login/ and others"
    assert (
        failures_text([failure], 100)
        == "302 to /login/ and others: 100 of 100, from 0 s on (GET /)"
    )


@pytest.mark.parametrize(
    ("status", "after", "what"),
    [
        (302, 20, "log in again"),
        (401, 0, "log in again"),
        (404, 0, "make the mix again"),
        (410, 1, "make the mix again"),
        (404, 20, "see the log"),
        (500, 0, "see the log"),
        (0, 0, "see the log"),
    ],
)
def test_new_mix_is_advised_only_where_addresses_were_missing_from_the_start(status, after, what):
    failures = [FailureResult(status=status, requests=9, after=after)]
    assert advice(failures).startswith(what)


def _result(p95_after=12.0, statuses=(500,), **began):
    """Return a load whose errors began after 20 s."""
    fields = {"after": 20.0, "operations": 4, "of": 6, "lasting": True} | began
    windows = [
        Window(end, 10, 10, 10, 10, 0.0, 0.0, 12.0 if end < 21 else p95_after)
        for end in range(5, 31)
    ]
    failures = [FailureResult(status=each, requests=50, after=20) for each in statuses]
    return Result(windows=windows, errors_began=ErrorStart(**fields), failures=failures)


def test_errors_that_begin_at_once_are_those_of_most_operations_that_last_and_are_quick():
    assert began_at_once(_result()).after == 20
    assert began_at_once(_result(p95_after=1.0))
    assert began_at_once(_result(operations=1, of=1))
    # Of one view of many; of an overload, whose other requests succeed; of timeouts.
    assert began_at_once(_result(operations=1)) is None
    assert began_at_once(_result(lasting=False)) is None
    assert began_at_once(_result(p95_after=900.0)) is None
    assert began_at_once(Result()) is None


def test_statuses_that_no_load_causes():
    assert unloaded_status(_result(statuses=(404,))) == 404
    assert unloaded_status(_result(statuses=(302,))) == 302
    # A limit of a rate may answer 403 or 429.
    for statuses in [(500,), (429,), (403,), (0,), (404, 500)]:
        assert unloaded_status(_result(statuses=statuses)) is None
