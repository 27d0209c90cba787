"""The native engine: up, down, set, status, and what survives a killed supervisor."""

import json
import os
import signal
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from lab.engine.native import grafana, shared_memory
from lab.engine.native.supervision import is_alive, leftovers, wait_for
from lab.errors import LabError
from lab.paths import State

SERVICES = [
    *("postgres", "redis", "toxiproxy"),
    *("backend", "backend-metrics", "nginx", "prometheus"),
    *("node-exporter", "process-exporter", "postgres-exporter", "redis-exporter"),
    *("nginx-exporter", "mtail"),
]


@pytest.fixture
def naive_again(lab, stack):
    """Whatever a test sets, the next one finds the defaults."""
    yield
    assert lab("set", "--preset", "article").code == 0


def test_status_tells_engine_services_and_active_settings(lab, stack):
    status = lab("status", "--json").json
    assert status["engine"] == "native"
    states = {service["name"]: service["state"] for service in status["services"]}
    assert {name: states[name] for name in SERVICES} == dict.fromkeys(SERVICES, "running")
    assert states["grafana"] == ("running" if grafana.installed() else "missing")
    assert status["services"][5]["url"] == stack.settings().target_url
    assert status["settings"]["LAB_DETAIL"] == "naive"


def test_status_reads_well_in_a_narrow_terminal(lab, stack):
    said = lab("status", COLUMNS="80")
    assert f"http://127.0.0.1:{os.environ['LAB_HTTP_PORT']}" in said.out
    assert "LAB_DETAIL" in said.out


def test_set_changes_what_the_backend_says_of_itself(lab, stack, naive_again):
    said = lab("set", "LAB_DETAIL=fast", "LAB_WORKERS=3", "LAB_DB_POOL=4", "--json")
    assert said.code == 0, said.err
    active = httpx.get(
        f"{stack.settings().backend_url}/lab/settings", headers={"X-Lab-Token": stack.token()}
    ).json()["settings"]
    assert (active["LAB_DETAIL"], active["LAB_WORKERS"], active["LAB_DB_POOL"]) == (
        *("fast", "3", "4"),
    )
    assert len(psutil.Process(stack._supervision.pid("backend")).children()) == 3


@pytest.mark.parametrize(
    "wanted",
    [
        ("LAB_DETAIL=fast",),
        # Without LAB_SHED, which refuses what waits for a busy machine's new workers.
        ("LAB_NGINX_CACHE=protected", "LAB_REDIS_CACHE=versioned"),
    ],
)
def test_set_loses_no_request(lab, stack, naive_again, wanted):
    with _asked_all_the_while(stack) as statuses:
        assert lab("set", *wanted).code == 0
    assert set(statuses) == {200}
    assert len(statuses) > 30


def test_the_end_of_a_delay_loses_no_request(lab, stack, naive_again):
    assert lab("set", "LAB_LATENCY_MS=60").code == 0
    with _asked_all_the_while(stack) as statuses:
        assert lab("set", "LAB_LATENCY_MS=0").code == 0
    assert set(statuses) == {200}
    assert len(statuses) > 10
    assert httpx.get(f"http://127.0.0.1:{stack.settings().LAB_TOXIPROXY_PORT}/proxies").json() == {}


@contextmanager
def _asked_all_the_while(stack):
    url, statuses, done = f"{stack.settings().target_url}/api/hotel/", [], threading.Event()

    def ask():
        while not done.is_set():
            try:
                statuses.append(httpx.get(url, timeout=30).status_code)
            except httpx.HTTPError as error:
                statuses.append(repr(error))

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    try:
        yield statuses
    finally:
        done.set()
        for asker in askers:
            asker.join()


def test_a_preset_is_active_in_every_service_when_set_returns(lab, stack, naive_again):
    said = lab("set", "--preset", "best", "LAB_NGINX_CACHE_TTL=2s", "--json")
    active = said.json["settings"]
    wanted = {"LAB_NGINX_CACHE": "protected", "LAB_REDIS_CACHE": "versioned", "LAB_SHED": "on"}
    assert active.items() >= (wanted | {"LAB_NGINX_CACHE_TTL": "2s"}).items()
    url = f"{stack.settings().target_url}/api/hotel/"
    statuses = [httpx.get(url).headers["X-Cache-Status"] for _ in range(2)]
    assert statuses[1] == "HIT"


def test_status_asks_nginx_itself(lab, stack):
    said = httpx.get(f"{stack.settings().nginx_status_url}/settings").json()
    assert said["LAB_NGINX_CACHE"] == "off"
    assert httpx.get(f"{stack.settings().target_url}/settings").status_code == 404


def test_the_article_preset_is_the_defaults():
    from lab.presets import preset_assignments
    from lab.settings import defaults

    assert {f"{k}={v}" for k, v in defaults().items()} >= set(preset_assignments("article"))


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("LAB_DETAIL=quick", "Allowed: naive, fast"),
        ("LAB_COLOUR=red", "There is no setting LAB_COLOUR"),
        ("LAB_HTTP_PORT=1234", "can't change while the stack runs"),
        ("LAB_TIMEOUT=55", "must be shorter than LAB_PROXY_TIMEOUT=55"),
        ("LAB_DETAIL", "Write NAME=VALUE"),
    ],
)
def test_set_refuses_what_it_does_not_know_and_changes_nothing(lab, stack, assignment, said):
    before = stack.settings()
    answer = lab("set", assignment)
    assert answer.is_one_message(2)
    assert said in answer.err
    assert stack.settings() == before


def test_up_again_changes_nothing(lab, stack):
    pids = [stack._supervision.pid(name) for name in SERVICES]
    assert lab("up").code == 0
    assert [stack._supervision.pid(name) for name in SERVICES] == pids


def test_metrics_are_scraped_from_a_port_of_their_own(stack):
    httpx.get(f"{stack.settings().target_url}/api/hotel/")
    query = 'lab_http_requests_total{service="backend",route="hotel_list"}'

    def arrived():
        url = f"{stack.settings().prometheus_url}/api/v1/query"
        return httpx.get(url, params={"query": query}).json()["data"]["result"]

    wait_for(arrived, seconds=20, what="The backend's counter in Prometheus")


def test_the_logs_of_a_service_can_be_read(lab, stack):
    assert "Ready to accept connections" in lab("logs", "redis").out
    answer = lab("logs", "mysql")
    assert answer.is_one_message(2)
    assert "postgres" in answer.err


def test_a_killed_supervisor_leaves_processes_that_up_replaces(lab, stack):
    state: State = stack._state
    bookings = _hotels(stack)
    os.kill(int((state.run / "supervisord.pid").read_text()), signal.SIGKILL)
    wait_for(lambda: not stack._supervision.alive, seconds=5, what="Supervisor's end")
    orphans = {process.pid for process in leftovers(state)}
    assert len(orphans) >= len(SERVICES)
    said = lab("up", "--json")
    assert said.code == 0, said.err
    assert "killed supervisor" in said.err
    assert not orphans & {process.pid for process in leftovers(state)}
    assert _hotels(stack) == bookings


def test_a_killed_worker_and_a_killed_server_come_back(stack):
    master = psutil.Process(stack._supervision.pid("backend"))
    killed = master.children()[0]
    killed.kill()
    wait_for(
        lambda: sum(map(is_alive, set(master.children()) - {killed})) == 2,
        seconds=10,
        what="A new worker",
    )
    orphans = master.children()
    master.kill()
    wait_for(
        lambda: (
            # A request wakes the orphans, which then see that their master is gone. Without one
            # they look after half of LAB_TIMEOUT.
            stack._ready(stack.settings())
            and stack._supervision.pid("backend") not in (0, master.pid)
            and not any(map(is_alive, orphans))
        ),
        seconds=30,
        what="A new server",
    )
    wait_for(lambda: stack._ready(stack.settings()), seconds=30, what="Its first answer")


def test_down_leaves_nothing_running_and_up_finds_the_data(lab, stack):
    before = _hotels(stack)
    shared = Path("/dev/shm") / f"{shared_memory.prefix(stack._state)}-of-an-old-layer"
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
    refused = lab("manage", "load_db")
    assert refused.is_one_message(1)
    assert "--reload" in refused.err


def test_secrets_are_for_their_owner_alone(stack):
    modes = {file.name: file.stat().st_mode & 0o777 for file in stack._state.secrets.iterdir()}
    names = [
        *("grafana_password", "lab_token", "monitor_password", "postgres_password"),
        "secret_key",
    ]
    assert modes == dict.fromkeys(names, 0o600)


def test_everything_listens_on_the_loopback_alone(stack):
    owned = {process.pid for process in leftovers(stack._state)}
    listening = [
        c for c in psutil.net_connections("inet") if c.status == "LISTEN" and c.pid in owned
    ]
    assert len({c.laddr.port for c in listening}) == 14 + (grafana.installed() is not None)
    assert {c.laddr.ip for c in listening} == {"127.0.0.1"}


def _hotels(stack) -> str:
    return json.dumps(httpx.get(f"{stack.settings().target_url}/api/hotel/", timeout=30).json())


def test_a_switch_that_failed_is_made_good_by_saying_it_again(lab, stack, naive_again):
    """The settings are saved before the server reads them: they are not what runs yet."""
    key = stack._state.secrets / "secret_key"
    hidden = key.rename(key.with_suffix(".hidden"))
    try:
        failed = lab("set", "LAB_SERVER=daphne", "LAB_NGINX_CACHE=basic")
    finally:
        hidden.rename(key)
    assert failed.is_one_message(1)
    assert "repeat the command" in failed.err
    # Supervisor would start it again by itself, but not tell Nginx.
    assert lab("set", "LAB_SERVER=daphne", "LAB_NGINX_CACHE=basic").code == 0
    said = httpx.get(f"{stack.settings().nginx_status_url}/settings").json()
    assert said["LAB_NGINX_CACHE"] == "basic"
    assert stack._ready(stack.settings())


def test_what_can_not_be_adopted_leaves_the_stack_as_it_was(stack):
    before = stack.settings()
    delayed = before.model_copy(update={"LAB_LATENCY_MS": 60, "LAB_WORKBENCH": "on"})
    stack._supervision.stop_service("toxiproxy")
    with pytest.raises(LabError, match="Toxiproxy does not answer"), stack.emptied(delayed):
        pass
    assert stack.settings() == before
    assert stack._ready(before)
    stack.up(before)
