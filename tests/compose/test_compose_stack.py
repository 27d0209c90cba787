"""The compose files on a real Docker engine, started as a user starts them."""

import json
import os

import httpx
import pytest

from load_lab.paths import project
from load_lab.settings import load_settings

SMOKE = ("run", "--rm", "load", "k6", "run", "--quiet", "main.js")


def _hotel_list(target):
    return httpx.get(f"{target}/api/hotel/", timeout=30)


@pytest.mark.core
def test_every_service_runs_and_is_healthy(stack):
    containers = [json.loads(line) for line in stack.compose("ps", "--format", "json").splitlines()]
    states = {each["Service"]: (each["State"], each["Health"]) for each in containers}
    # The official image of Nginx's exporter has no program for a health check.
    assert states.pop("nginx-exporter") == ("running", "")
    assert set(states.values()) == {("running", "healthy")}, states


def test_redis_loads_no_module_file_and_nginx_has_a_worker_per_cpu(stack):
    modules = "REDISCLI_AUTH=$(cat /run/lab-secrets/redis_password) redis-cli -e module list"
    # A module that is compiled in has an empty path.
    assert "/" not in stack.compose("exec", "-T", "redis", "sh", "-c", modules)
    rendered = stack.compose("exec", "-T", "nginx", "cat", "/run/nginx/nginx.conf")
    cpus = stack.compose("exec", "-T", "nginx", "nproc").strip()
    assert f"worker_processes {cpus};" in rendered


@pytest.mark.core
def test_data_is_loaded(stack, target):
    hotels = _hotel_list(target).json()
    assert len(hotels) == load_settings().LAB_DATA_HOTELS
    assert all(hotel["suite_count"] > 0 for hotel in hotels)


@pytest.fixture(scope="module")
def smoke(stack, push_url):
    """Run a smoke test with the generator's compose file; return k6's summary."""
    testid = "compose-smoke"
    summary = project().results / testid / "k6-summary.json"
    summary.parent.mkdir(parents=True, exist_ok=True)
    # As in a clone of any user.
    os.chown(summary.parent, 1234, 1234)
    environ = {"PUSH_URL": push_url, "TESTID": testid, "DURATION": "10s", "K6_USER": "1234:1234"}
    result = stack.load(*SMOKE, **environ, SUMMARY_PATH=f"/results/{testid}/k6-summary.json")
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(summary.read_text())


@pytest.mark.core
def test_smoke_test_passes_with_load_compose_file(smoke):
    metrics = smoke["metrics"]
    assert metrics["http_reqs"]["values"]["count"] > 20
    assert metrics["http_req_failed"]["values"]["rate"] == 0


@pytest.mark.core
def test_prometheus_count_matches_k6_count(smoke, prometheus, poll):
    query = 'sum(last_over_time(k6_http_reqs_total{testid="compose-smoke"}[10m]))'
    count = smoke["metrics"]["http_reqs"]["values"]["count"]
    poll(lambda: prometheus.instant(query) == count, seconds=10)


@pytest.mark.core
def test_restart_with_other_setting_switches_cache_layer(stack, target, smoke):
    assert "X-Cache-Status" not in _hotel_list(target).headers
    stack.compose("up", "-d", "--wait", LAB_NGINX_CACHE="protected", LAB_DETAIL="fast")
    statuses = [_hotel_list(target).headers["X-Cache-Status"] for _ in range(2)]
    assert statuses == ["MISS", "HIT"]


def test_backend_metrics_return_after_backend_restart(stack, poll):
    """The metrics server shares the backend's network, which ends with the backend."""
    stack.compose("restart", "--no-deps", "backend")
    url = f"http://127.0.0.1:{load_settings().LAB_METRICS_PORT}/metrics"

    def has_metrics():
        try:
            return "lab_accept_queue_connections 0.0" in httpx.get(url, timeout=2).text
        except httpx.HTTPError:
            return False

    poll(has_metrics, seconds=60)


def test_latency_needs_only_its_setting(stack, target):
    stack.compose("up", "-d", "--wait", LAB_LATENCY_MS="100")
    # One delay to the client, one for the rows, and one for the connection check in Postgres.
    assert _hotel_list(target).elapsed.total_seconds() > 0.3
    server = f"http://127.0.0.1:{load_settings().delayed_backend_port}/healthz"
    assert httpx.get(server).elapsed.total_seconds() > 0.1
    stack.compose("up", "-d", "--wait")
    with pytest.raises(httpx.HTTPError):
        httpx.get(server)
    _hotel_list(target).raise_for_status()
