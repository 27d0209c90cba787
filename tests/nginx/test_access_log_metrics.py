"""mtail reads every line of Nginx's access log once, even if the file is truncated."""

import json
import os
import re
import shutil
import subprocess

import httpx
import pytest

from load_lab.paths import ROOT
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.supervision import wait_for
from tests.support.ports import free_port

# A line as Nginx writes it; the path comes from the client.
LINE = {
    "time": "2026-11-21T12:00:00+00:00",
    "request_id": "0",
    "method": "GET",
    "path": '/api/hotel/","status":500,"cache_status":"HIT"',
    "status": 200,
    "bytes": 10,
    "sent_bytes": 110,
    "received_bytes": 70,
    "request_time": 0.03,
    "upstream_connect_time": "0.000",
    "upstream_response_time": "0.020",
    "upstream_status": "200",
    "cache_status": "",
}


def _line(**changes) -> str:
    text = json.dumps({**LINE, **changes}, separators=(",", ":"))
    # Nginx writes three digits.
    return re.sub(r'"request_time":([\d.]+)', lambda m: f'"request_time":{float(m[1]):.3f}', text)


class Log:
    """An access log and the metrics that mtail derives from it."""

    def __init__(self, folder) -> None:
        self.path = folder / "access.log"
        self.path.touch()
        self.port = free_port()

    def append(self, *lines: str) -> None:
        with self.path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def values(self) -> dict[str, float]:
        try:
            text = httpx.get(f"http://127.0.0.1:{self.port}/metrics").text
        except httpx.HTTPError:
            return {}
        pairs = (line.rpartition(" ") for line in text.splitlines() if line.startswith("lab_"))
        return {name: float(value) for name, _, value in pairs}

    def wait(self, name: str, value: float) -> None:
        wait_for(lambda: self.values().get(name) == value, seconds=10, what=f"{name} {value}")


@pytest.fixture
def log(tmp_path):
    log = Log(tmp_path)
    argv = [
        *(str(require("mtail")), "--address", "127.0.0.1", "--port", str(log.port)),
        *("--progs", str(ROOT / "nginx/access-log.mtail"), "--logs", str(log.path)),
        *("--emit_prog_label=false", "--logtostderr"),
    ]
    output = (tmp_path / "mtail.log").open("w")
    process = subprocess.Popen(argv, stderr=output, stdout=output, env=library_env())
    wait_for(
        lambda: "lab_nginx_sent_bytes_total" in str(log.values()), seconds=10, what="mtail's answer"
    )
    yield log
    process.terminate()
    process.wait()
    output.close()


OK_REQUESTS = 'lab_nginx_requests_total{cache="-",status="200"}'
COUNT = "lab_nginx_request_seconds_count"


def test_every_log_line_is_counted_with_its_values(log):
    log.append(
        _line(),
        _line(status=404, cache_status="MISS", request_time=1.2),
        # Served from the cache, without a request to the backend.
        _line(cache_status="HIT", upstream_response_time="", upstream_connect_time=""),
        # The backend failed, and an error page came from elsewhere.
        _line(status=503, upstream_response_time="0.300 : 0.000", upstream_status="500 : 200"),
        _line(status=499, upstream_response_time="-"),
        "2026/11/21 12:00:00 [warn] not a line of the access log",
        '{"time":"cut off',
    )
    log.wait(COUNT, 5)
    values = log.values()
    assert {k: v for k, v in values.items() if k.startswith("lab_nginx_requests_total")} == {
        OK_REQUESTS: 1,
        'lab_nginx_requests_total{cache="MISS",status="404"}': 1,
        'lab_nginx_requests_total{cache="HIT",status="200"}': 1,
        'lab_nginx_requests_total{cache="-",status="503"}': 1,
        'lab_nginx_requests_total{cache="-",status="499"}': 1,
    }
    assert values["lab_nginx_sent_bytes_total"] == 550
    assert values["lab_nginx_received_bytes_total"] == 350
    assert values["lab_nginx_upstream_seconds_count"] == 3
    assert values["lab_nginx_upstream_seconds_sum"] == pytest.approx(0.34)
    assert values['lab_nginx_request_seconds_bucket{le="0.025"}'] == 0
    assert values['lab_nginx_request_seconds_bucket{le="0.05"}'] == 4
    assert values['lab_nginx_request_seconds_bucket{le="2.5"}'] == 5


def test_truncated_log_loses_and_repeats_no_line(log):
    """The lab truncates large logs; logrotate's copytruncate copies them first.

    mtail checks four times a second and detects a truncation while the log is shorter than before.
    """
    log.append(*[_line()] * 50)
    log.wait(COUNT, 50)
    os.truncate(log.path, 0)
    # Nginx continues to write immediately.
    log.append(*[_line()] * 30)
    log.wait(COUNT, 80)
    shutil.copy(log.path, log.path.with_suffix(".1"))
    os.truncate(log.path, 0)
    log.append(*[_line()] * 7)
    log.wait(COUNT, 87)


def test_histogram_buckets_match_the_backend():
    from observability import metrics

    text = (ROOT / "nginx/access-log.mtail").read_text()
    lists = [
        [float(bound) for bound in buckets.split(",")]
        for buckets in re.findall(r"^histogram \w+ buckets (.+)$", text, re.MULTILINE)
    ]
    assert len(lists) == 2
    assert all([*bounds, float("inf")] == metrics.DURATION._upper_bounds for bounds in lists)


def test_mtail_parses_the_log_that_nginx_writes(stack):
    """Send a PATCH request, unlike all other tests, and compare its counter and the sent bytes."""
    settings = stack.settings()
    url = f"http://127.0.0.1:{settings.LAB_EXPORTERS_PORT + 5}/metrics"
    counter = 'lab_nginx_requests_total{cache="-",status="405"}'

    def value(name: str) -> float:
        match = re.search(rf"^{re.escape(name)} (\S+)$", httpx.get(url).text, re.MULTILINE)
        return float(match[1]) if match else 0

    before = {name: value(name) for name in (counter, "lab_nginx_sent_bytes_total")}
    response = httpx.patch(f"{settings.target_url}/api/hotel/")
    wait_for(lambda: value(counter) == before[counter] + 1, seconds=10, what="One request more")
    sent = value("lab_nginx_sent_bytes_total") - before["lab_nginx_sent_bytes_total"]
    assert sent > len(response.content)


def test_all_response_time_histograms_have_the_same_buckets():
    """Django's histograms and Nginx's on both engines are comparable only with equal buckets."""
    files = ("backend/observability/metrics.py", "nginx/access-log.mtail", "alloy/config.alloy")
    lists = [
        [float(bound) for bound in buckets.split(",")]
        for file in files
        for buckets in re.findall(
            r"buckets\s*=?\s*[(\[]?\s*(0\.001[\d., ]+)", (ROOT / file).read_text()
        )
    ]
    assert len(lists) == 5
    assert all(buckets == lists[0] for buckets in lists)
