"""The telemetry table on the docker engine, and what an outage of Prometheus leaves."""

import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from lab.analysis.queries import heartbeat
from tests.support.telemetry import TABLE, arrivals, due

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
    if signal.name == "disk" and not _kernel_counts_disk(stack):
        pytest.skip(f"{signal}: this kernel counts no bytes by cgroup (v1): host's line instead")
    for service in (signal.service, *(() if "k6_" in signal.query else ("alloy",))):
        if service in stack.left_out:
            pytest.skip(f"{signal}: without {service}: {stack.left_out[service]}")
    assert signal in arrived, f"{signal} is missing in Prometheus: {signal.query}"


def _kernel_counts_disk(stack):
    """Kernels from 6.x on count by cgroup v1 only where a limit is set, which is nowhere here.

    Postgres has written its data: a 0 is no lack of writing.
    """
    container = stack.compose("ps", "--quiet", "postgres").strip()
    counter = Path(f"/sys/fs/cgroup/blkio/docker/{container}/blkio.throttle.io_service_bytes")
    return not counter.exists() or counter.read_text().split() != ["Total", "0"]


@pytest.fixture(scope="module")
def outage(stack, push_url, prometheus, poll):
    """Prometheus is stopped in the middle of a smoke test; from when to when it was away."""
    if "alloy" in stack.left_out:
        pytest.skip(f"without alloy: {stack.left_out['alloy']}")
    # Visitors enough that something is answered in every second.
    environ = {"PUSH_URL": push_url, "TESTID": TESTID, "VUS": "20", "DURATION": "40s"}
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
    """Requests so far; `span` is how old a sample may be: by itself a query looks 5 min back."""
    return f'sum(last_over_time(k6_http_reqs_total{{testid="{TESTID}"}}[{span}]))'


def test_every_second_of_the_outage_is_there_afterwards(outage, prometheus):
    """The samples themselves, which k6 pushes each second: a total would hide what is missing."""
    began, ended, _ = outage
    for selector in (heartbeat(TESTID), f'k6_http_reqs_total{{testid="{TESTID}"}}'):
        moments = {at for series in prometheus.samples(selector, began, ended) for at in series}
        gaps = [later - earlier for earlier, later in pairwise([began, *sorted(moments), ended])]
        # A busy k6 may push one second together with the next; more is a gap.
        assert max(gaps) < 2.1, (selector, gaps)
        assert len(moments) > 0.8 * (ended - began), (selector, gaps)


def test_the_count_equals_k6s_own(outage, prometheus, poll):
    *_, said = outage
    (counted,) = (int(line.split()[1]) for line in said.splitlines() if "requests  " in line)
    loaded = _count("10m").replace('"}', '",name!~"setup_.*"}')
    poll(lambda: prometheus.instant(loaded) == counted, seconds=10)


def test_alloys_configuration_is_formatted_as_alloy_does_it(stack):
    if "alloy" in stack.left_out:
        pytest.skip(f"without alloy: {stack.left_out['alloy']}")
    stack.compose("exec", "-T", "alloy", "alloy", "fmt", "-t", "/etc/alloy/config.alloy")
    argv = ("run", "--rm", "generator-metrics", "fmt", "-t", "/etc/alloy/generator.alloy")
    done = stack.load(*argv)
    assert done.returncode == 0, done.stderr


def test_a_generator_of_its_own_has_its_cpu_measured(stack, push_url, prometheus, poll):
    if "alloy" in stack.left_out:
        pytest.skip(f"without alloy: {stack.left_out['alloy']}")
    started = stack.load("up", "-d", "generator-metrics", PUSH_URL=push_url)
    assert started.returncode == 0, started.stderr
    busy = 'node_cpu_seconds_total{service="load",mode="idle"} > 0'
    try:
        poll(lambda: prometheus.instant(busy) is not None, seconds=30)
    finally:
        stack.load("rm", "--stop", "--force", "generator-metrics")
