"""The telemetry table on the docker engine, and the data after an outage of Prometheus."""

import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from load_lab.metrics.queries import heartbeat, one_run
from tests.support.telemetry import TABLE, arrivals, required_signals

TESTID = "compose-outage"
OUTAGE_SECONDS = 10


@pytest.fixture(scope="module")
def signals(stack, push_url, prometheus):
    """Return the signals that arrived within 60 s of the beginning of a run."""
    stack.compose("up", "-d", "--wait")
    environ = {"PUSH_URL": push_url, "TESTID": "compose-telemetry", "DURATION": "30s"}
    argv = ("run", "--rm", "load", "k6", "run", "--quiet", "main.js")
    run = threading.Thread(target=stack.load, args=argv, kwargs=environ)
    run.start()
    signals = arrivals(prometheus, required_signals("docker"), within=60)
    run.join()
    return signals


def test_metrics_of_the_nginx_exporter_itself_are_dropped(stack, signals, prometheus):
    if "alloy" in stack.missing:
        pytest.skip(f"without alloy: {stack.missing['alloy']}")
    assert prometheus.instant('count({service="nginx",__name__=~"(go|process)_.+"})') is None


@pytest.mark.parametrize("signal", TABLE, ids=str)
def test_signal_arrives_within_a_minute(signal, stack, signals):
    if "docker" in signal.missing:
        pytest.skip(f"{signal}: {signal.missing['docker']}")
    if signal.name == "disk" and not _kernel_counts_disk(stack):
        pytest.skip(f"{signal}: this kernel counts no bytes by cgroup (v1): host's line instead")
    for service in (signal.service, *(() if "k6_" in signal.query else ("alloy",))):
        if service in stack.missing:
            pytest.skip(f"{signal}: without {service}: {stack.missing[service]}")
    assert signal in signals, f"{signal} is missing in Prometheus: {signal.query}"


def _kernel_counts_disk(stack):
    """Return whether the kernel counts disk bytes by cgroup.

    With cgroup v1, kernels from 6.x on count only if a limit is set, and no limit is set here.
    Postgres has written its data, so a count of 0 means that the kernel does not count.
    """
    container = stack.compose("ps", "--quiet", "postgres").strip()
    counter = Path(f"/sys/fs/cgroup/blkio/docker/{container}/blkio.throttle.io_service_bytes")
    return not counter.exists() or counter.read_text().split() != ["Total", "0"]


@pytest.fixture(scope="module")
def outage(stack, push_url, prometheus, poll):
    """Stop Prometheus during a smoke test; return the outage's begin and end, and k6's output."""
    if "alloy" in stack.missing:
        pytest.skip(f"without alloy: {stack.missing['alloy']}")
    # Enough virtual users for an answer in every second.
    environ = {"PUSH_URL": push_url, "TESTID": TESTID, "VUS": "20", "DURATION": "40s"}
    results = []
    argv = ("run", "--rm", "load", "k6", "run", "--quiet", "main.js")
    run = threading.Thread(target=lambda: results.append(stack.load(*argv, **environ)))
    run.start()
    # Wait until the run is well under way.
    poll(lambda: (prometheus.instant(_count()) or 0) > 100, seconds=60)
    stack.compose("stop", "prometheus")
    start = time.time()
    time.sleep(OUTAGE_SECONDS)
    end = time.time()
    stack.compose("up", "-d", "--wait", "--no-deps", "prometheus")
    run.join()
    assert results[0].returncode == 0, results[0].stderr
    return start, end, results[0].stdout


def _count(span="1s"):
    """Return a query of the requests so far; `span` is the maximum age of a sample (not 5 min)."""
    return f'sum(last_over_time(k6_http_reqs_total{{testid="{TESTID}"}}[{span}]))'


def test_every_second_of_outage_is_delivered_later(outage, prometheus):
    """Check the samples, which k6 pushes each second: a total would hide missing ones."""
    start, end, _ = outage
    for selector in (heartbeat(one_run(TESTID)), f'k6_http_reqs_total{{testid="{TESTID}"}}'):
        pushes = prometheus.samples(selector, start, end).values()
        times = {at for series in pushes for at in series}
        gaps = [later - earlier for earlier, later in pairwise([start, *sorted(times), end])]
        # A busy k6 may push two seconds together; a longer distance is a gap.
        assert max(gaps) < 2.1, (selector, gaps)
        assert len(times) > 0.8 * (end - start), (selector, gaps)


def test_prometheus_count_equals_k6_count(outage, prometheus, poll):
    *_, output = outage
    (count,) = (int(line.split()[1]) for line in output.splitlines() if "requests  " in line)
    query = _count("10m").replace('"}', '",name!~"setup_.*"}')
    poll(lambda: prometheus.instant(query) == count, seconds=10)


def test_alloy_configuration_matches_alloy_fmt(stack):
    if "alloy" in stack.missing:
        pytest.skip(f"without alloy: {stack.missing['alloy']}")
    stack.compose("exec", "-T", "alloy", "alloy", "fmt", "-t", "/etc/alloy/config.alloy")
    argv = ("run", "--rm", "generator-metrics", "fmt", "-t", "/etc/alloy/generator.alloy")
    result = stack.load(*argv)
    assert result.returncode == 0, result.stderr


def test_cpu_of_separate_generator_is_measured(stack, push_url, prometheus, poll):
    if "alloy" in stack.missing:
        pytest.skip(f"without alloy: {stack.missing['alloy']}")
    result = stack.load("up", "-d", "generator-metrics", PUSH_URL=push_url)
    assert result.returncode == 0, result.stderr
    busy = 'node_cpu_seconds_total{service="load",mode="idle"} > 0'
    try:
        poll(lambda: prometheus.instant(busy) is not None, seconds=30)
    finally:
        stack.load("rm", "--stop", "--force", "generator-metrics")
