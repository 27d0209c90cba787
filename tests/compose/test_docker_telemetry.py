"""The telemetry table on the docker engine, and what an outage of Prometheus leaves."""

import threading
import time

import pytest
from support.telemetry import TABLE, arrivals, due

TESTID = "compose-outage"
OUTAGE_SECONDS = 10


@pytest.fixture(scope="module")
def arrived(stack, push_url, prometheus):
    """Which signals arrived within 60 s of the beginning of a run."""
    stack.compose("up", "-d", "--wait")
    environ = {"PUSH_URL": push_url, "TESTID": "compose-telemetry", "DURATION": "30s"}
    argv = ("run", "--rm", "load", "k6", "run", "--quiet", "main.js")
    run = threading.Thread(target=stack.load, args=argv, kwargs=environ)
    run.start()
    found = arrivals(prometheus, due("docker"), within=60)
    run.join()
    return found


@pytest.mark.parametrize("signal", TABLE, ids=str)
def test_the_signal_arrives_within_a_minute(signal, stack, arrived):
    if "docker" in signal.missing:
        pytest.skip(f"{signal}: {signal.missing['docker']}")
    for service in (signal.service, *(() if "k6_" in signal.query else ("alloy",))):
        if service in stack.left_out:
            pytest.skip(f"{signal}: without {service}: {stack.left_out[service]}")
    assert signal in arrived, f"{signal} is missing in Prometheus: {signal.query}"


@pytest.fixture(scope="module")
def outage(stack, push_url, prometheus, poll):
    """Prometheus is stopped in the middle of a smoke test; from when to when it was away."""
    if "alloy" in stack.left_out:
        pytest.skip(f"without alloy: {stack.left_out['alloy']}")
    environ = {"PUSH_URL": push_url, "TESTID": TESTID, "PROFILE": "hold", "SCENARIO": "list"}
    environ |= {"RATE": "20", "DURATION": "40s"}
    said = []
    argv = ("run", "--rm", "load", "k6", "run", "--quiet", "main.js")
    run = threading.Thread(target=lambda: said.append(stack.load(*argv, **environ)))
    run.start()
    # Well inside the run.
    poll(lambda: (prometheus.instant(_count()) or 0) > 100, seconds=60)
    stack.compose("stop", "prometheus")
    began = time.time()
    time.sleep(OUTAGE_SECONDS)
    ended = time.time()
    stack.compose("up", "-d", "--wait", "--no-deps", "prometheus")
    run.join()
    assert said[0].returncode == 0, said[0].stderr
    return began, ended, said[0].stdout


def _count(span="1s"):
    """Requests so far; `span` is how old a sample may be: an instant query would look back 5 min."""
    return f'sum(last_over_time(k6_http_reqs_total{{testid="{TESTID}"}}[{span}]))'


def test_every_second_of_the_outage_is_there_afterwards(outage, prometheus):
    began, ended, _ = outage
    (series,) = prometheus.over(_count("2s"), int(began), int(ended), step=1)
    # Counted by one sample of at most 2 s of age per step, and it never stands still.
    assert sorted(series) == list(range(int(began), int(ended) + 1))
    values = [series[at] for at in sorted(series)]
    assert all(later > earlier for earlier, later in zip(values, values[1:], strict=False))


def test_the_count_equals_k6s_own(outage, prometheus, poll):
    *_, said = outage
    (counted,) = (int(line.split()[1]) for line in said.splitlines() if "requests  " in line)
    loaded = _count("10m").replace('"}', '",scenario="list"}')
    poll(lambda: prometheus.instant(loaded) == counted, seconds=10)
