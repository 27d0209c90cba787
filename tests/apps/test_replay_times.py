"""A log of 10,000 requests, sent again at its times: the gaps, and the counts per second."""

import json
import random
import statistics
import subprocess
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from load_lab.paths import project
from load_lab.stack.native.supervision import port_is_open, wait_for
from tests.support.arrival_times import correlation, gap_errors
from tests.support.nginx_front import nginx
from tests.support.ports import free_port

pytestmark = [pytest.mark.alone, pytest.mark.machine(part="apps")]

# Of each second of the log; its mean is 50/s, so the log lasts 200 s.
RATES, REQUESTS = (10, 30, 60, 100), 10_000
# Nginx answers at once, and logs each request with its milliseconds.
CONFIGURATION = """
pid {folder}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    log_format arrival '$msec $uri';
    access_log {folder}/arrivals.log arrival;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        location / {{ return 200; }}
    }}
}}
"""


@contextmanager
def _serving(folder, port):
    (folder / "nginx.conf").write_text(CONFIGURATION.format(folder=folder, port=port))
    process = subprocess.Popen(nginx(folder))
    try:
        wait_for(lambda: port_is_open("127.0.0.1", port), seconds=10, what="Nginx")
        yield
    finally:
        process.terminate()
        process.wait()


def _times():
    """Return the times of the log's requests, in seconds after the first, to a millisecond."""
    chance, times, second = random.Random(7), [], 0
    while len(times) < REQUESTS:
        times += sorted(second + chance.random() for _ in range(chance.choice(RATES)))
        second += 1
    return [round(at - times[0], 3) for at in times[:REQUESTS]]


def _write_log(path, times):
    begin = datetime(2026, 11, 1, tzinfo=UTC)
    lines = [
        {
            "time": (begin + timedelta(seconds=at)).isoformat(timespec="milliseconds"),
            "method": "GET",
            "path": f"/articles/{number % 40}/",
            "status": 200,
        }
        for number, at in enumerate(times)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.mark.parametrize("speed", [1, 10])
def test_requests_of_a_log_are_sent_at_their_times(lab, stack, tmp_path, capsys, speed):
    times, port = _times(), free_port()
    _write_log(tmp_path / "log.json", times)
    target = tmp_path / "articles.toml"
    target.write_text(f'url = "http://127.0.0.1:{port}"\n')
    with _serving(tmp_path, port):
        made = lab("mix", "make", str(target), "--log", str(tmp_path / "log.json"), "--keep-times")
        assert made.code == 0, made.err
        run = lab("k6", "times", "--target", str(target), "--speed", str(speed), "--json")
    assert run.code == 0, run.err
    assert (project().results / run.json["testid"]).is_dir()
    due = [at / speed for at in times]
    sent = _sent_times(tmp_path / "arrivals.log")
    p95 = statistics.quantiles(gap_errors(due, sent), n=20)[-1]
    # At ten times the speed most gaps are below 5 ms anyway.
    evenly_spaced = statistics.quantiles(gap_errors(due, _evenly(due)), n=20)[-1]
    with capsys.disabled():
        print(f"\nspeed {speed}: gaps off by {p95 * 1000:.1f} ms at p95,", end=" ")
        print(f"{evenly_spaced * 1000:.1f} ms if they were evenly spaced in their second;", end=" ")
        print(f"counts per second correlate with {correlation(due, sent):.4f}")
    assert p95 <= 0.005
    assert p95 <= evenly_spaced / 2
    assert correlation(due, sent) >= 0.99


def _evenly(times):
    """Return as many times in each second, evenly spaced."""
    counts = Counter(int(at) for at in times)
    return [second + n / count for second, count in sorted(counts.items()) for n in range(count)]


def _sent_times(log):
    """Return the times of the load's requests, without those of setup(), which come before."""
    lines = [line.split() for line in log.read_text().splitlines()]
    times = sorted(float(at) for at, path in lines if path.startswith("/articles/"))[-REQUESTS:]
    return [at - times[0] for at in times]
