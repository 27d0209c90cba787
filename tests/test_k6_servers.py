"""The scenarios of the server experiments, against a target whose faults are known."""

import json
import os
import subprocess

import pytest
from support.small_target import Target, serving

from lab.engine.native.programs import require
from lab.paths import ROOT

SOCKETS = {
    **{"SCENARIO": "availability", "PROFILE": "hold", "RATE": "10", "DURATION": "1s"},
    "CONNECTIONS": "9",
}
WORK = {"SCENARIO": "workbench", "PROFILE": "closed-ramp", "VUS": "4", "DURATION": "2s"}


@pytest.fixture
def load(tmp_path):
    """Run k6 on a target; what it counted, by metric, and what it said."""

    def run(target, **variables):
        summary = tmp_path / "summary.json"
        with serving(target):
            done = subprocess.run(
                [str(require("k6")), "run", "--quiet", "main.js"],
                cwd=ROOT / "k6",
                env={
                    **{k: v for k, v in os.environ.items() if not k.startswith("K6_")},
                    **variables,
                    "BASE_URL": target.url,
                    "SUMMARY_PATH": str(summary),
                },
                capture_output=True,
                text=True,
                check=False,
            )
        return Loaded(done, json.loads(summary.read_text()) if summary.exists() else {})

    return run


class Loaded:
    """What a k6 left."""

    def __init__(self, done, summary):
        self.code, self.said, self._summary = done.returncode, done.stdout + done.stderr, summary

    def count(self, metric, statistic="count"):
        found = self._summary["metrics"]
        metric = next(
            (m for m in (f"{metric}{{scenario:workbench}}", metric) if m in found), metric
        )
        return found[metric]["values"][statistic]

    @property
    def sockets(self):
        names = ("expected", "lost", "doubled", "other", "closed")
        return tuple(int(self.count(f"lab_ws_{name}")) for name in names)


def test_each_booking_reaches_each_socket_that_watches_its_hotel(load):
    loaded = load(Target(), **SOCKETS)
    # Ten bookings, in three hotels that three sockets each watch.
    assert loaded.sockets == (30, 0, 0, 0, 0)
    assert loaded.count("lab_ws_messages") == 30
    assert loaded.count("lab_ws_connections", "max") == 9
    assert 0 <= loaded.count("lab_ws_delay", "min") <= loaded.count("lab_ws_delay", "max") < 5000


def test_a_message_that_does_not_come_or_comes_twice_is_seen(load):
    # Of 30 messages the 7th, 14th, 21st, 28th and the 10th, 20th, 30th.
    assert load(Target(drop_every=7, double_every=10), **SOCKETS).sockets == (30, 4, 3, 0, 0)


def test_a_socket_that_closes_has_lost_what_comes_after(load):
    expected, lost, doubled, other, closed = load(Target(close=9), **SOCKETS).sockets
    assert (expected, doubled, other, closed) == (30, 0, 0, 9)
    # The first booking was told; all are closed at it.
    assert lost == 27


def test_a_target_without_sockets_stops_the_run_with_what_to_do(load):
    loaded = load(Target(deaf=True), **SOCKETS)
    assert loaded.code not in (0, 99)
    assert "LAB_WEBSOCKETS=on" in loaded.said


def test_the_ramp_ends_with_its_time_and_what_it_cut_off_has_not_failed(load):
    target = Target(slow=0.3)
    loaded = load(target, **WORK, ROUTE="sleep")
    answered, begun = loaded.count("http_reqs"), loaded.count("lab_begun")
    assert loaded.count("http_req_failed", "passes") == 0
    # Every user had one under way; setup asked once.
    assert begun - answered == 4
    assert begun == target.begun - 1
    assert "unfinished  4 requests" in loaded.said


def test_a_failed_request_is_sent_again_and_its_user_sees_the_success(load):
    target = Target(errors=1)
    loaded = load(target, **WORK | {"VUS": "1"}, ROUTE="io_create", RETRIES="2")
    tries, failed = loaded.count("http_reqs"), loaded.count("http_req_failed", "passes")
    # One user, whose every first try fails: each failure is sent again, and no second one fails.
    assert loaded.count("lab_retries") == failed
    # The last one may be cut off.
    users = len(set(target.titles))
    assert tries - failed in (users - 1, users)
    assert all("content=" in form for form in target.titles)


def test_a_route_that_is_not_there_stops_the_run(load):
    loaded = load(Target(deaf=True), **WORK, ROUTE="hello")
    assert loaded.code not in (0, 99)
    assert "LAB_WORKBENCH=on" in loaded.said
