"""The scenario `replay`: k6 sends the requests of a mix to a server that records them."""

import json
import os
import random
import statistics
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from load_lab.load.load import Load
from load_lab.paths import ROOT
from load_lab.settings.env_file import read_env_file
from load_lab.stack.native.program_paths import require
from load_lab.targets.mix import Arrival, Mix, Operation, Request, write_mix
from tests.support.arrival_times import correlation, gap_errors

TOKEN = "canary-5d81f0c2b97e4a36"
HEADERS = {"Authorization": f"Token {TOKEN}"}


@dataclass
class Received:
    """One request, as the server received it."""

    at: float
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """A server that records its requests; `answers` are statuses by path, otherwise 200.

    Status 0: it closes the connection, from the second request of the path on. `seconds` is the
    duration of each response.
    """

    answers: dict[str, int] = field(default_factory=dict)
    seconds: float = 0
    received: list[Received] = field(default_factory=list)
    url: str = ""

    def counts(self, skip=0):
        return Counter((each.method, each.path) for each in self.received[skip:])


@contextmanager
def serving(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            at = time.time()
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status = server.answers.get(self.path, 200)
            time.sleep(server.seconds)
            server.received.append(Received(at, self.command, self.path, dict(self.headers), body))
            if status == 0 and server.counts()[self.command, self.path] > 1:
                self.close_connection = True
                return
            self.send_response(status or 200)
            self.send_header("Set-Cookie", "session=one; Path=/")
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_POST = answer

        def log_message(self, *arguments):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def _operation(name, weight, *paths, method="GET", expect=200, body=None, **headers):
    requests = tuple(Request(path=path, body=body) for path in paths)
    return Operation(
        name=name, method=method, weight=weight, expect=expect, headers=headers, requests=requests
    )


OPERATIONS = (
    _operation("GET /items/{id}/", 70, "/items/1/", "/items/2/", "/items/3/?a=b", accept="a/b"),
    _operation("POST /items/", 20, "/items/", method="POST", body='{"name": "x"}'),
    _operation("GET /old/", 9, "/old/", expect=302),
    _operation("GET /none/", 1, "/none/", expect=404),
)
ANSWERS = {"/old/": 302, "/none/": 404}


@dataclass
class K6Run:
    """A k6 run that ended, and the requests that its target received."""

    server: Server
    code: int
    output: str
    summary: dict

    def count(self, metric, statistic="count"):
        return self.summary["metrics"][metric]["values"][statistic]

    @property
    def dropped(self):
        """Iterations that k6 had no CPU for: none, unless the machine is busy."""
        metrics = self.summary["metrics"]
        return self.count("dropped_iterations") if "dropped_iterations" in metrics else 0


def _run(folder, server, load, *flags, mix=OPERATIONS, arrivals=(), **environ):
    """Run k6 with a mix, which is a text of a file, or its operations."""
    path, summary = folder / "mix.json", folder / "summary.json"
    if isinstance(mix, str):
        path.write_text(mix)
    elif mix:
        write_mix(Mix(source="test", operations=mix, arrivals=arrivals), path)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("K6_")}
    variables = {"BASE_URL": server.url, "SUMMARY_PATH": str(summary), "MIX": str(path)}
    process = subprocess.run(
        [str(require("k6")), "run", "--quiet", *flags, "main.js"],
        cwd=ROOT / "k6",
        env=clean | load.env() | variables | environ,
        capture_output=True,
        text=True,
        check=False,
    )
    document = json.loads(summary.read_text()) if summary.exists() else {}
    return K6Run(server, process.returncode, process.stdout + process.stderr, document)


@pytest.fixture(scope="module")
def hold(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hold")
    with serving(Server(ANSWERS)) as server:
        load = Load("hold", "replay", rate=100, duration="5s", testid="hold")
        return _run(folder, server, load, TARGET_HEADERS=json.dumps(HEADERS))


def _load_requests(run):
    """Return the load's requests: setup sends one of each operation before them."""
    return run.server.received[len(OPERATIONS) :]


def test_each_operation_has_its_share_at_any_time(hold):
    assert hold.code == 0, hold.output
    requests = _load_requests(hold)
    assert len(requests) + hold.dropped in (499, 500, 501)
    names = {r.path: o.name for o in OPERATIONS for r in o.requests}
    # k6 sends a few requests at the same time, so the server may receive them in another order.
    concurrent = 3
    for operation in OPERATIONS:
        for length in range(1, len(requests) + 1):
            count = sum(names[r.path] == operation.name for r in requests[:length])
            assert abs(count - length * operation.weight / 100) <= 4.5 + concurrent
    paths = Counter(request.path for request in requests)
    items = [paths[request.path] for request in OPERATIONS[0].requests]
    assert max(items) - min(items) <= 10


def test_requests_have_the_headers_of_operation_and_target(hold):
    for request in hold.server.received:
        assert request.headers["Authorization"] == HEADERS["Authorization"]
        assert "Cookie" not in request.headers
        if request.path.startswith("/items/") and request.method == "GET":
            assert request.headers["Accept"] == "a/b"
        assert (request.body == b'{"name": "x"}') == (request.method == "POST")


def test_expected_redirects_and_errors_are_successes_and_not_followed(hold):
    assert "/elsewhere" not in {request.path for request in hold.server.received}
    requests = len(_load_requests(hold))
    assert hold.count("http_reqs{scenario:replay}") == requests
    assert hold.count("http_req_failed{scenario:replay}", "passes") == 0
    assert hold.count("lab_answers_in_time") == requests
    assert hold.count("checks", "passes") == requests
    assert hold.count("lab_cache_status{cache_status:NONE}") == requests
    assert hold.summary["lab"]["operations"] == len(OPERATIONS)


def test_two_generators_send_the_requests_of_one(hold, tmp_path):
    load = Load("hold", "replay", rate=100, duration="5s", testid="two")
    sequence = ("--execution-segment-sequence", "0,1/2,1")

    def run(segment):
        folder = tmp_path / segment[0]
        folder.mkdir()
        with serving(Server(ANSWERS)) as server:
            return _run(folder, server, load, "--execution-segment", segment, *sequence)

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(run, ("0:1/2", "1/2:1")))
    both = sum((run.server.counts(skip=len(OPERATIONS)) for run in runs), Counter())
    one = hold.server.counts(skip=len(OPERATIONS))
    # A run may have one arrival more or less at its end.
    dropped = hold.dropped + sum(run.dropped for run in runs)
    assert sum(((both - one) + (one - both)).values()) <= 3 + dropped
    assert all(abs(len(_load_requests(run)) + run.dropped - 250) <= 2 for run in runs)


def test_unexpected_responses_stop_the_run_before_the_load(tmp_path):
    operations = tuple(_operation(f"GET /{n}/", 1, f"/{n}/") for n in range(10))
    with serving(Server({f"/{n}/": 500 + n for n in range(3, 10)})) as server:
        run = _run(tmp_path, server, Load("hold", "replay", rate=5), mix=operations)
    assert run.code not in (0, 99)
    assert "7 of 10 operations did not respond as the mix says" in run.output
    for n in range(3, 8):
        assert f"GET /{n}/: {500 + n}, expected 2xx" in run.output
    assert "GET /8/:" not in run.output
    assert "and 2 more. See the target's log." in run.output
    assert "lab mix make" not in run.output
    assert run.server.counts() == {("GET", f"/{n}/"): 1 for n in range(10)}
    assert "setup stopped: no load was sent" in run.output


@pytest.mark.parametrize(
    ("mix", "environ", "message"),
    [
        (None, {}, "mix.json can't be read"),
        ("{", {}, "mix.json is not JSON"),
        ('{"mix_version": 2}', {}, "mix.json has mix version 2; these scripts read 1"),
        (OPERATIONS, {"MIX": ""}, "MIX is not set"),
        (OPERATIONS, {"MIX": "mix.json"}, "MIX=mix.json is not an absolute path"),
        (OPERATIONS, {"ONLY": "GET /x*"}, "ONLY=GET /x* matches none of the 4 operations"),
        (OPERATIONS, {"ONLY": "/items/"}, "The nearest: GET /items/{id}/, POST /items/, GET /old/"),
        (OPERATIONS, {"ONLY": "get none"}, "The nearest: GET /none/, GET"),
        (OPERATIONS, {"ONLY": "POST /item"}, "The nearest: POST /items/,"),
        (OPERATIONS, {"TARGET_HEADERS": f'{{"{TOKEN}'}, "TARGET_HEADERS is not a JSON object"),
        (OPERATIONS, {"PROFILE": "times"}, "a MIX with the times of a log"),
        (OPERATIONS, {"ROUTE": "cpu"}, "ROUTE applies to SCENARIO=workbench only"),
    ],
)
def test_invalid_input_is_one_message_before_the_first_request(tmp_path, mix, environ, message):
    with serving(Server()) as server:
        run = _run(tmp_path, server, Load("smoke", "replay"), mix=mix, **environ)
    assert run.code not in (0, 99)
    assert message in run.output
    assert run.output.count("level=error") == 1
    assert TOKEN not in run.output
    assert run.server.received == []


def test_only_selects_operations_by_name(tmp_path):
    load = Load("hold", "replay", rate=20, duration="1s")
    with serving(Server(ANSWERS)) as server:
        run = _run(tmp_path, server, load, ONLY="GET /items*")
    assert run.code == 0, run.output
    assert {path for _, path in server.counts()} == {r.path for r in OPERATIONS[0].requests}


def test_secret_headers_appear_in_no_log_summary_or_metric(tmp_path):
    flaky = (*OPERATIONS, _operation("GET /flaky/", 20, "/flaky/"))
    load = Load("hold", "replay", rate=40, duration="3s", testid="zebra-93714")
    push = read_env_file(ROOT / "k6/push.env")
    with serving(Server(ANSWERS | {"/flaky/": 0})) as server, serving(Server()) as receiver:
        push["K6_PROMETHEUS_RW_SERVER_URL"] = f"{receiver.url}/api/v1/write"
        secret = {"TARGET_HEADERS": json.dumps(HEADERS)}
        run = _run(tmp_path, server, load, "--verbose", mix=flaky, **push, **secret)
    assert run.code == 0, run.output
    assert all(TOKEN in request.headers["Authorization"] for request in server.received)
    # The log has failed requests, and the pushes have the run's texts, in snappy's literals.
    assert "Request Failed" in run.output
    pushed = b"".join(request.body for request in receiver.received)
    assert b"zebra-93714" in pushed
    places = [run.output, json.dumps(run.summary), str([r.headers for r in receiver.received])]
    # A literal ends where snappy finds four bytes again.
    parts = [TOKEN[i : i + 8] for i in range(len(TOKEN) - 7)]
    assert [part for part in parts if any(part in place for place in places)] == []
    assert [part for part in parts if part.encode() in pushed] == []


def test_http_debug_with_secret_headers_is_refused(tmp_path):
    with serving(Server()) as server:
        secret = {"TARGET_HEADERS": json.dumps(HEADERS)}
        run = _run(tmp_path, server, Load("smoke", "replay"), "--http-debug", **secret)
    assert run.code not in (0, 99)
    assert "--http-debug=headers would log TARGET_HEADERS" in run.output
    assert TOKEN not in run.output
    assert server.received == []


SECONDS = 12


def _arrivals(speed):
    """Return the arrivals of a log of 12 s at this speed, whose rate changes every second."""
    rng = random.Random(4)
    rates = [rng.choice((5, 15, 30, 60)) for _ in range(SECONDS)]
    times = [second + rng.random() for second, rate in enumerate(rates) for _ in range(rate)]
    first = min(times)
    ordered = sorted((at - first) * speed for at in times)
    return tuple(
        Arrival(at=at, operation=0, request=i % len(OPERATIONS[0].requests))
        for i, at in enumerate(ordered)
    )


@pytest.mark.parametrize("speed", [1, 10])
def test_recorded_arrivals_are_sent_at_their_times(tmp_path, speed):
    log = _arrivals(speed)
    due = [arrival.at / speed for arrival in log]
    sent = _sent_times(tmp_path, log, speed)
    # The median, since other tests take CPU time at the same time; tests/apps measures p95.
    assert statistics.median(gap_errors(due, sent)) <= 0.005
    assert correlation(due, sent) >= 0.99


def _sent_times(folder, log, speed):
    """Replay a log; return when its requests arrived, in seconds after the first."""
    # The server starts a thread for each VU's connection.
    load = Load("times", "replay", vus=50, speed=speed, testid="times")
    with serving(Server(ANSWERS)) as server:
        run = _run(folder, server, load, arrivals=log)
    assert run.code == 0, run.output
    requests = sorted(_load_requests(run), key=lambda request: request.at)
    paths = [request.path for request in OPERATIONS[0].requests]
    assert Counter(r.path for r in requests) == Counter(paths[a.request] for a in log)
    assert run.count("http_reqs{scenario:replay}") == len(log)
    assert not any("Cookie" in request.headers for request in requests)
    return [request.at - requests[0].at for request in requests]


def test_recorded_arrivals_have_no_plan_and_late_ones_are_dropped(tmp_path):
    arrivals = tuple(Arrival(at=n / 10, operation=0, request=0) for n in range(30))
    load = Load("times", "replay", vus=2, testid="slow")
    with serving(Server(seconds=1.5)) as server:
        run = _run(tmp_path, server, load, mix=OPERATIONS[:1], arrivals=arrivals)
    sent = run.count("http_reqs{scenario:replay}")
    assert run.code == 0, run.output
    assert run.count("dropped_iterations") == 30 - sent > 0
    assert run.summary["lab"]["plan"] is None
