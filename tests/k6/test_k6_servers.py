"""The scenarios of the server experiments, run against targets with known faults."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from load_lab.paths import ROOT
from load_lab.stack.native.program_paths import require
from tests.support.small_target import Target, serve

SOCKETS = {
    **{"SCENARIO": "availability", "PROFILE": "hold", "RATE": "10", "DURATION": "1s"},
    "CONNECTIONS": "9",
}
WORK = {"SCENARIO": "workbench", "PROFILE": "closed-ramp", "VUS": "4", "DURATION": "2s"}
RUNS = {
    "sound": (Target(), SOCKETS),
    "faulty": (Target(drop_every=7, double_every=10), SOCKETS),
    "closing": (Target(close=9), SOCKETS),
    "mute": (Target(mute=2), SOCKETS),
    "slow": (Target(slow=0.3), WORK | {"ROUTE": "sleep"}),
    "failing": (Target(errors=1), WORK | {"VUS": "1", "ROUTE": "io_create", "RETRIES": "2"}),
    "deaf": (Target(bare=True), SOCKETS),
    "without routes": (Target(bare=True), WORK | {"ROUTE": "hello"}),
}


@dataclass
class LoadRun:
    """The result of a k6 run, and its target."""

    target: Target
    code: int
    output: str
    metrics: dict

    def count(self, metric, statistic="count"):
        submetric = f"{metric}{{scenario:workbench}}"
        return self.metrics[submetric if submetric in self.metrics else metric]["values"][statistic]

    @property
    def sockets(self):
        names = ("expected", "lost", "doubled", "other", "closed")
        return tuple(int(self.count(f"lab_ws_{name}")) for name in names)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return all runs by name. They mostly wait, so they run concurrently."""
    folder = tmp_path_factory.mktemp("summaries")

    def run(name):
        return _run(*RUNS[name], folder / f"{name}.json")

    with ThreadPoolExecutor(len(RUNS)) as pool:
        return dict(zip(RUNS, pool.map(run, RUNS), strict=True))


def _run(target, variables, summary):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("K6_")}
    with serve(target):
        process = subprocess.run(
            [str(require("k6")), "run", "--quiet", "main.js"],
            cwd=ROOT / "k6",
            env=environ | variables | {"BASE_URL": target.url, "SUMMARY_PATH": str(summary)},
            capture_output=True,
            text=True,
            check=False,
        )
    metrics = json.loads(summary.read_text())["metrics"] if summary.exists() else {}
    return LoadRun(target, process.returncode, process.stdout + process.stderr, metrics)


# Ten bookings rotate over three hotels, each watched by three sockets: 30 expected messages.


def test_booking_reaches_every_socket_that_watches_its_hotel(runs):
    run = runs["sound"]
    assert run.sockets == (30, 0, 0, 0, 0)
    assert run.count("lab_ws_messages") == 30
    assert run.count("lab_ws_connections", "max") == 9
    assert 0 <= run.count("lab_ws_delay", "min") <= run.count("lab_ws_delay", "max") < 5000


def test_lost_and_duplicate_messages_are_counted(runs):
    # Lost: the 7th, 14th, 21st and 28th. Duplicate: the 10th, 20th and 30th.
    assert runs["faulty"].sockets == (30, 4, 3, 0, 0)


def test_closed_socket_loses_later_messages(runs):
    # All are closed at the first booking, whose messages were sent.
    assert runs["closing"].sockets == (30, 27, 0, 0, 9)


def test_silent_socket_is_retried_before_the_load(runs):
    assert runs["mute"].sockets == (30, 0, 0, 0, 0)


def test_ramp_ends_on_time_and_aborted_requests_are_not_failed(runs):
    run = runs["slow"]
    responses, starts = run.count("http_reqs"), run.count("lab_begun")
    assert run.count("http_req_failed", "passes") == 0
    # Setup sent one request.
    assert responses < run.target.work_requests - 1 <= starts <= responses + 4
    assert f"unfinished  {starts - responses} requests" in run.output


def test_failed_request_is_retried_successfully(runs):
    run = runs["failing"]
    attempts, failed = run.count("http_reqs"), run.count("http_req_failed", "passes")
    # One user, whose first attempts all fail and whose retries all succeed.
    assert run.count("lab_retries") == failed > 1
    # The last request may be aborted.
    users = len(set(run.target.titles))
    assert attempts - failed in (users - 1, users)


@pytest.mark.parametrize(
    ("name", "advice"), [("deaf", "LAB_WEBSOCKETS=on"), ("without routes", "LAB_WORKBENCH=on")]
)
def test_missing_feature_of_the_target_stops_the_run_with_advice(runs, name, advice):
    assert runs[name].code not in (0, 99)
    assert advice in runs[name].output
