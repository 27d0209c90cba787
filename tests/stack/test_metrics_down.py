"""Prometheus stops or hangs before or during a test: the test continues and reports lost data."""

import json
import os
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from lab.analysis.prometheus import Prometheus
from lab.analysis.queries import heartbeat
from lab.analysis.windows import PUSH_SECONDS
from lab.paths import RESULTS, ROOT
from lab.stack.native.supervision import wait_for

HOLD = ("hold", "--rate", "20", "--scenario", "list")


@dataclass
class Outage:
    """Shortest and longest possible time without Prometheus, in seconds, once it is over."""

    shortest: float = 0
    longest: float = 0


@contextmanager
def _stopped(stack):
    outage, began = Outage(), time.monotonic()
    stack._supervision._call("stopProcess", "prometheus")
    stopped = time.monotonic()
    try:
        yield outage
    finally:
        outage.shortest = time.monotonic() - stopped
        stack._supervision.start_service("prometheus")
        url = stack.settings().prometheus_url
        wait_for(lambda: _ready(url), seconds=20, what="Prometheus")
        outage.longest = time.monotonic() - began


def _ready(url):
    """Return whether Prometheus is ready. It listens before, and returns 503 while loading data."""
    try:
        return httpx.get(f"{url}/-/ready").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


@contextmanager
def _hanging(stack):
    """Make Prometheus accept connections without responding."""
    pid = stack._supervision.pid("prometheus")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _files_are_there(document):
    assert all((ROOT / path).exists() for path in document["files"].values())
    summary = json.loads((ROOT / document["files"]["summary"]).read_text())
    assert summary["metrics"]["http_reqs"]["values"]["count"] == document["recorded"]["k6"] > 0


def test_load_without_prometheus_finishes_as_unrecorded(lab, stack):
    with _stopped(stack):
        said = lab("k6", *HOLD, "--duration", "7s", "--json")
    assert said.code == 1
    assert "Traceback" not in said.err
    found = said.json
    assert (found["outcome"], found["break_point"]) == ("unrecorded", None)
    assert found["recorded"]["prometheus"] is None
    assert found["requests"] >= 140
    assert f"k6 counted {found['recorded']['k6']} requests" in found["verdict"]
    assert "No break point can be found" in found["verdict"]
    assert "picture" not in found["files"]
    _files_are_there(found)


def test_smoke_test_passes_while_prometheus_hangs(lab, stack):
    with _hanging(stack):
        said = lab("k6", "smoke", "--scenario", "list", "--duration", "2s", "--vus", "1")
    assert said.code == 0, said.err
    assert said.out.startswith("passed: ")
    assert "NOT ALL: Prometheus does not answer" in said.out


def test_outage_during_load_is_measured_in_seconds_and_requests(lab, stack):
    testid = f"outage-{os.getpid()}"
    outages = []
    thread = threading.Thread(target=lambda: outages.append(_outage_of_five_seconds(stack, testid)))
    thread.start()
    said = lab("k6", *HOLD, "--duration", "15s", "--testid", testid, "--json")
    thread.join()
    (outage,) = outages
    assert said.code == 1, said.err
    assert "Traceback" not in said.err
    found = said.json
    assert found["outcome"] == "unrecorded"
    # k6 pushes running totals, so only the times of the requests are lost.
    assert found["recorded"]["prometheus"] == found["recorded"]["k6"]
    # A push covers the second before it, and its sample is up to a second old when it arrives.
    assert (
        outage.shortest - 2 * PUSH_SECONDS
        <= found["recorded"]["seconds_missing"]
        <= outage.longest + 2 * PUSH_SECONDS
    )
    assert f"lacks {found['recorded']['seconds_missing']:.0f} of 15 s" in found["verdict"]
    _files_are_there(found)
    assert (RESULTS / testid / "result.json").exists()


def _outage_of_five_seconds(stack, testid):
    prometheus = Prometheus(stack.settings().prometheus_url)
    begun = lambda: prometheus.instant(f"count_over_time({heartbeat(testid)}[1m]) > 3")  # noqa: E731
    wait_for(begun, seconds=30, what="The fourth push")
    with _stopped(stack) as outage:
        # A fixed wait, as the outage is defined by its duration.
        threading.Event().wait(5)
    return outage
