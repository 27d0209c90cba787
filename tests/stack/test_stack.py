"""The native engine: up, down, status, and recovery from a killed supervisor."""

import json
import os
import signal
from pathlib import Path

import httpx
import psutil
from config import secrets

from load_lab.paths import State
from load_lab.stack.native.services import grafana
from load_lab.stack.native.supervision import is_alive, leftovers, shared_memory_prefix, wait_for
from load_lab.stack.reported import api_problem

SERVICES = [
    *("postgres", "redis", "toxiproxy"),
    *("backend", "backend-metrics", "nginx", "prometheus"),
    *("node-exporter", "process-exporter", "postgres-exporter", "redis-exporter"),
    *("nginx-exporter", "mtail"),
]


def test_status_reports_engine_services_and_active_settings(lab, stack):
    status = lab("status", "--json").json
    assert status["engine"] == "native"
    states = {service["name"]: service["state"] for service in status["services"]}
    assert {name: states[name] for name in SERVICES} == dict.fromkeys(SERVICES, "running")
    assert states["grafana"] == ("running" if grafana.find_installation() else "missing")
    assert status["services"][5]["url"] == stack.settings().target_url
    assert status["settings"]["LAB_DETAIL"] == "naive"


def test_status_fits_a_narrow_terminal(lab, stack):
    result = lab("status", COLUMNS="80")
    assert f"http://127.0.0.1:{os.environ['LAB_HTTP_PORT']}" in result.out
    assert "LAB_DETAIL" in result.out


def test_nginx_reports_settings_only_on_its_status_port(lab, stack):
    settings = httpx.get(f"{stack.settings().nginx_status_url}/settings").json()
    assert settings["LAB_NGINX_CACHE"] == "off"
    assert httpx.get(f"{stack.settings().target_url}/settings").status_code == 404


def test_second_up_changes_nothing(lab, stack):
    pids = [stack._supervision.pid(name) for name in SERVICES]
    assert lab("up").code == 0
    assert [stack._supervision.pid(name) for name in SERVICES] == pids


def test_metrics_are_scraped_from_a_separate_port(stack):
    httpx.get(f"{stack.settings().target_url}/api/hotel/")
    query = 'lab_http_requests_total{service="backend",route="hotel_list"}'

    def has_arrived():
        url = f"{stack.settings().prometheus_url}/api/v1/query"
        return httpx.get(url, params={"query": query}).json()["data"]["result"]

    wait_for(has_arrived, seconds=20, what="The backend's counter in Prometheus")


def test_logs_command_prints_the_log_of_a_service(lab, stack):
    assert "Ready to accept connections" in lab("logs", "redis").out
    result = lab("logs", "mysql")
    assert result.is_one_message(2)
    assert "postgres" in result.err


def test_up_replaces_processes_of_a_killed_supervisor(lab, stack):
    state: State = stack._state
    bookings = _hotels(stack)
    os.kill(int((state.run / "supervisord.pid").read_text()), signal.SIGKILL)
    wait_for(lambda: not stack._supervision.alive, seconds=5, what="Supervisor's end")
    orphans = {process.pid for process in leftovers(state)}
    assert len(orphans) >= len(SERVICES)
    result = lab("up", "--json")
    assert result.code == 0, result.err
    assert "killed supervisor" in result.err
    assert not orphans & {process.pid for process in leftovers(state)}
    assert _hotels(stack) == bookings


def test_killed_worker_and_killed_server_are_restarted(stack):
    master = psutil.Process(stack._supervision.pid("backend"))
    worker = master.children()[0]
    worker.kill()
    wait_for(
        lambda: sum(map(is_alive, set(master.children()) - {worker})) == 2,
        seconds=10,
        what="A new worker",
    )
    orphans = master.children()
    master.kill()
    wait_for(
        lambda: (
            # A request wakes the orphans, which then detect their dead master. Without a request
            # they check after half of LAB_TIMEOUT.
            not api_problem(stack.settings())
            and stack._supervision.pid("backend") not in (0, master.pid)
            and not any(map(is_alive, orphans))
        ),
        seconds=30,
        what="A new server",
    )
    wait_for(lambda: not api_problem(stack.settings()), seconds=30, what="Its first answer")


def test_down_stops_all_processes_and_up_finds_the_data(lab, stack):
    before = _hotels(stack)
    shared = Path("/dev/shm") / f"{shared_memory_prefix(stack._state)}-of-an-old-layer"
    shared.touch()
    assert lab("down", "--json").json["state"] == "down"
    assert leftovers(stack._state) == []
    assert not shared.exists()
    assert lab("status", "--json").json["settings"] == {}
    assert "lab up" in lab("status").out
    assert lab("up").code == 0
    assert _hotels(stack) == before


def test_management_commands_run_in_the_stack(lab, stack):
    tables = {
        table["table"]: table for table in lab("manage", "table_sizes", "--json").json["tables"]
    }
    assert tables["hotels_hotel"]["rows"] == 4
    result = lab("manage", "load_db")
    assert result.is_one_message(1)
    assert "--reload" in result.err


def test_secrets_are_readable_only_by_their_owner(stack):
    modes = {file.name: file.stat().st_mode & 0o777 for file in stack._state.secrets.iterdir()}
    names = ("redis.acl", "push.htpasswd", "redis-exporter.json")
    assert modes == dict.fromkeys([*secrets.NAMES, *names], 0o600)
    assert stack._state.secrets.stat().st_mode & 0o777 == 0o700


def test_all_services_listen_only_on_loopback(stack):
    pids = {process.pid for process in leftovers(stack._state)}
    listening = [
        c for c in psutil.net_connections("inet") if c.status == "LISTEN" and c.pid in pids
    ]
    assert len({c.laddr.port for c in listening}) == 14 + (grafana.find_installation() is not None)
    assert {c.laddr.ip for c in listening} == {"127.0.0.1"}


def _hotels(stack) -> str:
    return json.dumps(httpx.get(f"{stack.settings().target_url}/api/hotel/", timeout=30).json())
