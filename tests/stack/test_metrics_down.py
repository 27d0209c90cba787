"""Prometheus stops or hangs before or during a test: the test continues and reports lost data."""

import json
import os
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest

from load_lab.metrics.counters import PUSH_SECONDS
from load_lab.metrics.prometheus import Prometheus
from load_lab.metrics.queries import heartbeat, one_run
from load_lab.paths import ROOT, project
from load_lab.stack.native.supervision import wait_for

HOLD = ("hold", "--rate", "20", "--scenario", "list")


@dataclass
class Outage:
    """Shortest and longest possible time without Prometheus, in seconds, once it is over."""

    shortest: float = 0
    longest: float = 0


@contextmanager
def _prometheus_outage(stack):
    outage, begin = Outage(), time.monotonic()
    stack._supervision._call("stopProcess", "prometheus")
    down = time.monotonic()
    try:
        yield outage
    finally:
        outage.shortest = time.monotonic() - down
        stack._supervision.start_service("prometheus")
        url = stack.settings().prometheus_url
        wait_for(lambda: _ready(url), seconds=20, what="Prometheus")
        outage.longest = time.monotonic() - begin


def _ready(url):
    """Return whether Prometheus is ready. It listens before, and returns 503 while loading data."""
    try:
        return httpx.get(f"{url}/-/ready").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


@contextmanager
def _hang(stack):
    """Make Prometheus accept connections without responding."""
    pid = stack._supervision.pid("prometheus")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _check_files(document):
    assert all((ROOT / path).exists() for path in document["files"].values())
    summary = json.loads((ROOT / document["files"]["summary"]).read_text())
    assert summary["metrics"]["http_reqs"]["values"]["count"] == document["recorded"]["k6"] > 0


def test_load_without_prometheus_finishes_as_unrecorded(lab, stack):
    with _prometheus_outage(stack):
        result = lab("k6", *HOLD, "--duration", "7s", "--json")
    assert result.code == 1
    assert "Traceback" not in result.err
    document = result.json
    assert (document["outcome"], document["break_point"]) == ("unrecorded", None)
    assert document["recorded"]["prometheus"] is None
    assert document["requests"] >= 140
    assert f"k6 counted {document['recorded']['k6']} requests" in document["verdict"]
    assert "No break point can be found" in document["verdict"]
    assert "picture" not in document["files"]
    _check_files(document)


@pytest.mark.full
def test_smoke_test_passes_while_prometheus_hangs(lab, stack):
    with _hang(stack):
        result = lab("k6", "smoke", "--scenario", "list", "--duration", "2s", "--vus", "1")
    assert result.code == 0, result.err
    assert result.out.startswith("passed: ")
    assert "NOT ALL: Prometheus does not answer" in result.out


@pytest.mark.full
def test_outage_during_load_is_measured_in_seconds_and_requests(lab, stack):
    testid = f"outage-{os.getpid()}"
    outages = []
    thread = threading.Thread(target=lambda: outages.append(_stop_for_five_seconds(stack, testid)))
    thread.start()
    result = lab("k6", *HOLD, "--duration", "15s", "--testid", testid, "--json")
    thread.join()
    (outage,) = outages
    assert result.code == 1, result.err
    assert "Traceback" not in result.err
    document = result.json
    assert document["outcome"] == "unrecorded"
    # k6 pushes running totals, so only the times of the requests are lost.
    assert document["recorded"]["prometheus"] == document["recorded"]["k6"]
    # A push covers the second before it, and its sample is up to a second old when it arrives.
    assert (
        outage.shortest - 2 * PUSH_SECONDS
        <= document["recorded"]["seconds_missing"]
        <= outage.longest + 2 * PUSH_SECONDS
    )
    assert f"lacks {document['recorded']['seconds_missing']:.0f} of 15 s" in document["verdict"]
    _check_files(document)
    assert (project().results / testid / "result.json").exists()


@pytest.mark.full
def test_break_before_an_outage_is_a_break(lab, stack):
    testid = f"outage-{os.getpid()}-late"
    thread = threading.Thread(target=_stop_for_five_seconds, args=(stack, testid, 12))
    thread.start()
    load = ("--duration", "25s", "--p95", "1ms", "--testid", testid)
    document = lab("k6", *HOLD, *load, "--json").json
    thread.join()
    recorded = document["recorded"]
    assert recorded["seconds_missing"] > 0
    assert document["outcome"] == "broke", document["verdict"]
    assert document["break_point"]["seconds_into_test"] < recorded["missing_from"]


def _stop_for_five_seconds(stack, testid, after=4):
    prometheus = Prometheus(stack.settings().prometheus_url)
    pushes = f"count_over_time({heartbeat(one_run(testid))}[1m]) >= {after}"
    wait_for(lambda: prometheus.instant(pushes), seconds=60, what=f"push {after}")
    with _prometheus_outage(stack) as outage:
        # A fixed wait, as the outage is defined by its duration.
        threading.Event().wait(5)
    return outage
