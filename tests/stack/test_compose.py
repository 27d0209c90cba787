"""The compose files, as docker compose itself reads them; no engine is needed for that."""

import os
import re
import subprocess
from urllib.parse import urlsplit

import pytest

from lab.paths import ROOT
from lab.stack.native.install import TOXIPROXY_VERSION
from lab.stack.native.render import OPEN_FILES
from lab.suites.figures import LIMITS
from tests.support.compose import config

ONE_SHOT = {"secrets", "init", "latency"}


@pytest.fixture(scope="module")
def target():
    return config("docker-compose.yml")


@pytest.fixture(scope="module")
def load():
    return config("docker-compose.load.yml")


def test_it_is_whole_without_any_env_file(target):
    assert set(target) == {
        *ONE_SHOT,
        *("postgres", "redis", "backend", "backend-metrics", "nginx", "prometheus"),
        *("backend-beside", "backend-worker", "toxiproxy"),
        *("alloy", "docker-socket", "nginx-exporter", "grafana", "push-gate"),
    }


def test_what_stays_has_a_health_check_and_what_ends_is_waited_for(target):
    unchecked = {name for name, service in target.items() if "healthcheck" not in service}
    # The image of Nginx's exporter is its program alone: nothing in it could ask.
    assert unchecked == {*ONE_SHOT, "nginx-exporter"}
    waited = target["backend"]["depends_on"]["init"]["condition"]
    assert waited == "service_completed_successfully"


def test_every_service_has_limits(target, load):
    for services in (target, load):
        for name, service in services.items():
            assert set(service["deploy"]["resources"]["limits"]) >= {"cpus", "memory"}, name


def test_an_overload_is_held_to_the_memory_that_containers_have(target):
    for name, allowed in LIMITS.items():
        assert int(target[name]["deploy"]["resources"]["limits"]["memory"]) == allowed, name


def test_the_backend_may_open_as_many_files_as_on_the_native_engine(target):
    for name, service in target.items():
        if service["image"] == target["backend"]["image"]:
            assert service["ulimits"]["nofile"] == OPEN_FILES, name


def test_the_worker_is_asked_and_nobody_waits_for_it(target):
    """The backend answers its check: who waited for it would wait for each other."""
    cmd, check, url, setting = target["backend-worker"]["healthcheck"]["test"]
    assert (cmd, check, setting) == ("CMD", "bin/check", "off")
    assert urlsplit(url).hostname in target
    waits = {
        name for name, each in target.items() if "backend-worker" in each.get("depends_on", {})
    }
    assert waits == set()


def test_every_port_is_on_the_loopback_unless_asked(target):
    ports = [port for service in target.values() for port in service.get("ports", [])]
    assert len(ports) == 13
    assert {port["host_ip"] for port in ports} == {"127.0.0.1"}
    opened = config("docker-compose.yml", LAB_BIND="0.0.0.0")
    # Nginx's status page stays shut even then.
    hosts = {
        name: {port["host_ip"] for port in service.get("ports", [])}
        for name, service in opened.items()
    }
    assert hosts["nginx"] == {"0.0.0.0", "127.0.0.1"}
    # Which asks for a password, as what it hands on to does not.
    assert hosts["push-gate"] == {"0.0.0.0"}
    closed = ("postgres", "redis", "backend", "grafana", "toxiproxy", "alloy", "prometheus")
    assert set().union(*(hosts[name] for name in closed)) == {"127.0.0.1"}
    # Who reaches this one can read every container's settings.
    assert target["docker-socket"]["network_mode"] == "none"
    holders = {name for name, service in target.items() if _has_window(service)}
    assert holders == {"alloy", "docker-socket"}


def _has_window(service):
    return any(volume.get("source") == "docker-window" for volume in service.get("volumes", []))


def test_settings_of_the_shell_reach_the_backend():
    services = config("docker-compose.yml", LAB_DETAIL="fast", LAB_DB_MAX_CONNECTIONS="300")
    assert services["backend"]["environment"]["LAB_DETAIL"] == "fast"
    assert "max_connections=300" in services["postgres"]["command"]


@pytest.mark.parametrize("server", ["off", "uvicorn", "daphne", "granian"])
def test_the_server_beside_the_backend_is_started_and_asked_as_its_setting_says(server):
    services = config("docker-compose.yml", LAB_SECOND_SERVER=server)
    beside, nginx = services["backend-beside"], services["nginx"]
    assert beside["environment"]["LAB_SECOND_SERVER"] == server
    assert beside["command"] == ["bin/when", server, "bin/serve", "beside"]
    assert beside["healthcheck"]["test"][-1] == server
    assert nginx["environment"]["LAB_SECOND_SERVER"] == server
    # Nginx looks the name up when it starts, also while nothing is sent there.
    host, _, port = nginx["environment"]["LAB_BESIDE_UPSTREAM"].partition(":")
    assert host in services
    assert beside["environment"]["BACKEND_BESIDE_BIND"] == f"0.0.0.0:{port}"
    assert nginx["depends_on"]["backend-beside"]["condition"] == "service_healthy"


@pytest.mark.parametrize(
    "name",
    [
        *("POSTGRES", "REDIS", "NGINX", "PROMETHEUS", "ALLOY", "GRAFANA", "NGINX_EXPORTER"),
        "TOXIPROXY",
    ],
)
def test_images_have_exact_tags_and_can_be_replaced(target, name):
    service = name.lower().replace("_", "-")
    assert re.search(r":v?\d+\.\d+(\.\d+)?(-\w+)*$", target[service]["image"])
    replaced = config("docker-compose.yml", **{f"LAB_{name}_IMAGE": "mirror/it:1"})
    assert replaced[service]["image"] == "mirror/it:1"


def test_toxiproxy_is_of_the_version_that_the_native_engine_builds(target):
    assert target["toxiproxy"]["image"].endswith(f":{TOXIPROXY_VERSION}")


def test_the_delay_reaches_all_who_take_part_in_it():
    services = config("docker-compose.yml", LAB_LATENCY_MS="100", LAB_LATENCY_DIRECTION="incoming")
    for name in ("latency", "backend", "nginx"):
        assert services[name]["environment"]["LAB_LATENCY_MS"] == "100", name
    assert services["latency"]["environment"]["LAB_LATENCY_DIRECTION"] == "incoming"
    # Commands go straight to Postgres.
    name = "BACKEND_DELAYED_POSTGRES"
    told = {n for n, each in services.items() if name in each.get("environment", {})}
    assert told == {"latency", "backend"}
    assert services["backend"]["depends_on"]["latency"]["condition"] == (
        "service_completed_successfully"
    )


@pytest.mark.parametrize(
    ("environ", "upstream"),
    [
        ({}, "straight"),
        ({"LAB_LATENCY_MS": "0"}, "straight"),
        ({"LAB_LATENCY_MS": "5"}, "delayed"),
    ],
)
def test_nginx_takes_the_detour_only_while_there_is_a_delay(environ, upstream):
    names = {"LAB_BACKEND_UPSTREAM": "straight", "LAB_DELAYED_UPSTREAM": "delayed"}
    script = ROOT / "nginx/upstream.envsh"
    # The image passes over what may not be executed.
    assert os.access(script, os.X_OK)
    argv = ["sh", "-euc", f'. {script}; printf %s "$LAB_BACKEND_UPSTREAM"']
    done = subprocess.run(argv, env=names | environ, capture_output=True, text=True, check=True)
    assert done.stdout == upstream


def test_postgres_keeps_its_data_where_version_18_does(target):
    assert target["postgres"]["image"].startswith("postgres:18")
    assert "/var/lib/postgresql" in [v["target"] for v in target["postgres"]["volumes"]]


def test_the_load_needs_two_addresses_and_nothing_of_the_target():
    push_url = "http://p:2/api/v1/metrics/write"
    services = config("docker-compose.load.yml", BASE_URL="http://t:1", PUSH_URL=push_url)
    load = services["load"]
    assert load["environment"]["BASE_URL"] == "http://t:1"
    assert load["environment"]["K6_PROMETHEUS_RW_SERVER_URL"] == push_url
    assert load["environment"]["K6_OUT"] == "experimental-prometheus-rw"
    assert load["entrypoint"] == []
    # Not started with it: on the target's own host Alloy sees the generator.
    assert "generator-metrics" not in services
