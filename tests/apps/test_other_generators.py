"""k6's numbers of a target beside those of wrk and vegeta, in alternating slices of 5 seconds."""

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from load_lab.bench import wrk
from load_lab.load.k6 import run_k6
from load_lab.load.load import Load, new_testid
from load_lab.load.summary import read_summary
from load_lab.machine.cpus import choose_cpus
from load_lab.stack.engine import settings_of
from load_lab.stack.native.program_paths import require
from load_lab.targets.app_process import running
from load_lab.targets.declared import find_target
from tests.support.ports import free_port

pytestmark = [pytest.mark.alone, pytest.mark.machine(part="apps")]

PROJECT = Path("tests/support/ninja_app").resolve()
SLICES, SECONDS = 10, 5
# So many that requests always wait: the target is the limit, not the time between two of a client.
# Its response must cost much more than k6's 0.5 ms of CPU time per request.
CONNECTIONS = 16
# Of the closed rate: at a higher one, both measure a queue.
OPEN_SHARE = 0.3


@pytest.fixture(scope="module")
def target(tmp_path_factory, stack):
    """Start the project under gunicorn on the target's CPUs; its one route needs no token."""
    folder = tmp_path_factory.mktemp("articles")
    port = free_port()
    # Threads: a sync worker closes the connection after each response.
    server = [sys.executable, "-m", "gunicorn", "--threads", "4", "--bind", f"127.0.0.1:{port}"]
    path = folder / "articles.toml"
    path.write_text(
        f'url = "http://127.0.0.1:{port}"\nready = "/api/health"\n'
        f'[start]\ncommand = {[*server, "manage:application"]}\nfolder = "{PROJECT}"\n'
    )
    operation = {"name": "GET /api/report", "method": "GET", "weight": 1, "expect": 200}
    operation["requests"] = [{"path": "/api/report"}]
    mix = {"mix_version": 1, "source": "a test", "operations": [operation]}
    (folder / "articles.mix.json").write_text(json.dumps(mix))
    with running(find_target(str(path)), settings_of(stack)) as started:
        yield started


def test_rate_of_a_closed_load_agrees_with_wrk(stack, target, tmp_path, capsys):
    cpus = choose_cpus(settings_of(stack))
    load = wrk.Load(f"{target.url}/api/report", CONNECTIONS, SECONDS)
    ratios = []
    for number in range(SLICES):
        ours = _closed_rate(stack, target, tmp_path / str(number))
        ratios.append(ours / wrk.measure(load, cpus).rate)
    _judge("rate of k6 ÷ wrk", ratios, 0.05, capsys)


def test_median_of_an_open_load_agrees_with_vegeta(stack, target, tmp_path, capsys):
    cpus = choose_cpus(settings_of(stack)).load
    rate = int(OPEN_SHARE * _closed_rate(stack, target, tmp_path / "closed"))
    ratios = []
    for number in range(SLICES):
        load = {"profile": "hold", "rate": rate, "duration": f"{SECONDS}s"}
        summary = _run(stack, target, load, tmp_path / str(number))
        ours = summary.milliseconds("http_req_duration", "p(50)")
        ratios.append(ours / _vegeta_median(target.url, rate, cpus))
    _judge(f"p50 of k6 ÷ vegeta at {rate}/s", ratios, 0.1, capsys)


def _closed_rate(stack, target, folder):
    load = {"profile": "closed", "vus": CONNECTIONS, "duration": f"{SECONDS}s"}
    summary = _run(stack, target, load, folder)
    return summary.value("http_reqs", "count") / summary.seconds


def _run(stack, target, load, folder):
    run = run_k6(stack, target, Load(**load, testid=new_testid("compare")), folder)
    return read_summary(run.summary_file)


def _vegeta_median(url, rate, cpus):
    """Return vegeta's p50 in ms."""
    attack = ["attack", f"-rate={rate}", f"-duration={SECONDS}s", f"-max-workers={10 * rate}"]
    vegeta = ["taskset", "-c", cpus, str(require("vegeta"))]
    requests = f"GET {url}/api/report\n".encode()
    results = subprocess.run([*vegeta, *attack], input=requests, capture_output=True, check=True)
    report = [*vegeta, "report", "-type=json"]
    printed = subprocess.run(report, input=results.stdout, capture_output=True, check=True)
    document = json.loads(printed.stdout)
    assert document["success"] == 1
    return document["latencies"]["50th"] / 1e6


def _judge(what, ratios, tolerance, capsys):
    """Print the median with its interval of 97.9 %: of ten values, the second to the ninth."""
    median, ordered = statistics.median(ratios), sorted(ratios)
    with capsys.disabled():
        print(f"\n{what}: median {median:.3f}, interval {ordered[1]:.3f} to {ordered[-2]:.3f}")
    assert abs(median - 1) <= tolerance, ratios
