"""The compose files as `docker compose` parses them, which needs no Docker engine."""

import os
import re
import subprocess
from urllib.parse import urlsplit

import pytest

from load_lab.paths import ROOT
from load_lab.stack.docker import compose_files
from load_lab.stack.native.builds import K6_VERSION, TOXIPROXY_VERSION
from load_lab.stack.native.render import OPEN_FILES
from load_lab.targets.reference.growth import MEMORY_LIMITS
from tests.support.compose import config

pytestmark = [pytest.mark.core, pytest.mark.full]

ONE_SHOT = {"secrets", "init", "latency"}
_MONITORING = {
    *("backend-metrics", "prometheus", "alloy", "push-gate", "docker-socket", "nginx-exporter"),
    *("grafana", "generator-metrics"),
}


@pytest.fixture(scope="module")
def target():
    return config("docker-compose.yml")


@pytest.fixture(scope="module")
def load():
    return config("docker-compose.load.yml", COMPOSE_PROFILES="remote")


def test_compose_file_is_complete_without_env_file(target):
    assert set(target) == {
        *ONE_SHOT,
        *("postgres", "redis", "backend", "backend-metrics", "nginx", "prometheus"),
        *("backend-beside", "backend-worker", "toxiproxy"),
        *("alloy", "docker-socket", "nginx-exporter", "grafana", "push-gate"),
    }


def test_running_services_have_health_checks_and_init_is_awaited(target):
    unchecked = {name for name, service in target.items() if "healthcheck" not in service}
    # The image of Nginx's exporter contains only its program, so it cannot run a health check.
    assert unchecked == {*ONE_SHOT, "nginx-exporter"}
    condition = target["backend"]["depends_on"]["init"]["condition"]
    assert condition == "service_completed_successfully"


def test_every_service_has_a_memory_limit_and_only_monitoring_a_cpu_limit(target, load):
    """A CPU limit of the target would be the measured break point, and Docker rejects a limit above
    the machine's CPUs.
    """
    limits = {n: each["deploy"]["resources"]["limits"] for n, each in (target | load).items()}
    assert all("memory" in limit for limit in limits.values()), limits
    cpus = {name: float(limit.get("cpus") or 0) for name, limit in limits.items()}
    assert {name for name, limit in cpus.items() if limit} == _MONITORING
    assert max(cpus.values()) <= 1


@pytest.mark.parametrize(
    ("version", "starts_quickly"),
    [("1.44", True), ("1.52", True), ("1.43", False), ("1.41", False)],
)
def test_health_checks_fit_the_engine(version, starts_quickly):
    checks = [
        service["healthcheck"]
        for service in config(*compose_files(version)).values()
        if "healthcheck" in service
    ]
    assert {"start_interval" in check for check in checks} == {starts_quickly}
    assert {check["interval"] for check in checks} == {"30s" if starts_quickly else "10s"}
    assert {check["start_period"] for check in checks} == {"2m0s"}


def test_overload_memory_limits_match_container_limits(target):
    for name, allowed in MEMORY_LIMITS.items():
        assert int(target[name]["deploy"]["resources"]["limits"]["memory"]) == allowed, name


def test_backend_open_file_limit_matches_native_engine(target):
    for name, service in target.items():
        if service["image"] == target["backend"]["image"]:
            assert service["ulimits"]["nofile"] == OPEN_FILES, name


def test_worker_has_health_check_and_no_dependents(target):
    """The backend answers the health check, so a dependency on the worker would be circular."""
    cmd, check, url, setting = target["backend-worker"]["healthcheck"]["test"]
    assert (cmd, check, setting) == ("CMD", "bin/check", "off")
    assert urlsplit(url).hostname in target
    dependents = {
        name for name, each in target.items() if "backend-worker" in each.get("depends_on", {})
    }
    assert dependents == set()


def test_ports_are_on_loopback_unless_lab_bind_is_set(target):
    ports = [port for service in target.values() for port in service.get("ports", [])]
    assert len(ports) == 13
    assert {port["host_ip"] for port in ports} == {"127.0.0.1"}
    services = config("docker-compose.yml", LAB_BIND="0.0.0.0")
    # Nginx's status page stays on the loopback even then.
    hosts = {
        name: {port["host_ip"] for port in service.get("ports", [])}
        for name, service in services.items()
    }
    assert hosts["nginx"] == {"0.0.0.0", "127.0.0.1"}
    # The metrics ingress requires a password; the service behind it does not.
    assert hosts["push-gate"] == {"0.0.0.0"}
    loopback_only = ("postgres", "redis", "backend", "grafana", "toxiproxy", "alloy", "prometheus")
    assert set().union(*(hosts[name] for name in loopback_only)) == {"127.0.0.1"}
    # Access to this proxy exposes every container's settings.
    assert target["docker-socket"]["network_mode"] == "none"
    holders = {name for name, service in target.items() if _mounts_socket(service)}
    assert holders == {"alloy", "docker-socket"}


def _mounts_socket(service):
    return any(volume.get("source") == "docker-window" for volume in service.get("volumes", []))


def test_shell_settings_reach_backend_and_postgres():
    services = config("docker-compose.yml", LAB_DETAIL="fast", LAB_DB_MAX_CONNECTIONS="300")
    assert services["backend"]["environment"]["LAB_DETAIL"] == "fast"
    assert "max_connections=300" in services["postgres"]["command"]


@pytest.mark.parametrize("server", ["off", "uvicorn", "daphne", "granian"])
def test_second_server_and_its_health_check_follow_the_setting(server):
    services = config("docker-compose.yml", LAB_SECOND_SERVER=server)
    second_server, nginx = services["backend-beside"], services["nginx"]
    assert second_server["environment"]["LAB_SECOND_SERVER"] == server
    assert second_server["command"] == ["bin/unless-off", server, "bin/serve", "beside"]
    assert second_server["healthcheck"]["test"][-1] == server
    assert nginx["environment"]["LAB_SECOND_SERVER"] == server
    # Nginx resolves the name at startup, even if it sends no requests there.
    host, _, port = nginx["environment"]["LAB_BESIDE_UPSTREAM"].partition(":")
    assert host in services
    assert second_server["environment"]["BACKEND_BESIDE_BIND"] == f"0.0.0.0:{port}"
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
    services = config("docker-compose.yml", **{f"LAB_{name}_IMAGE": "mirror/it:1"})
    assert services[service]["image"] == "mirror/it:1"


def test_versions_match_native_engine_and_dockerfile(target, load):
    assert target["toxiproxy"]["image"].endswith(f":{TOXIPROXY_VERSION}")
    assert load["load"]["image"].endswith(f":{K6_VERSION}")
    assert load["generator-metrics"]["image"] == target["alloy"]["image"]
    base = target["backend"]["build"]["args"]["BASE_IMAGE"]
    assert f"ARG BASE_IMAGE={base}\n" in (ROOT / "backend/Dockerfile").read_text()


def test_delay_setting_reaches_every_service_involved():
    services = config("docker-compose.yml", LAB_LATENCY_MS="100", LAB_LATENCY_DIRECTION="incoming")
    for name in ("latency", "backend", "nginx"):
        assert services[name]["environment"]["LAB_LATENCY_MS"] == "100", name
    assert services["latency"]["environment"]["LAB_LATENCY_DIRECTION"] == "incoming"
    # Commands connect to Postgres directly.
    name = "BACKEND_DELAYED_POSTGRES"
    names = {n for n, each in services.items() if name in each.get("environment", {})}
    assert names == {"latency", "backend"}
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
def test_nginx_uses_delayed_upstream_only_with_a_delay(environ, upstream):
    names = {"LAB_BACKEND_UPSTREAM": "straight", "LAB_DELAYED_UPSTREAM": "delayed"}
    script = ROOT / "nginx/settings.envsh"
    # The image skips scripts that are not executable.
    assert os.access(script, os.X_OK)
    argv = ["sh", "-euc", f'. {script}; printf %s "$LAB_BACKEND_UPSTREAM"']
    env = {**names, **environ, "PATH": os.environ["PATH"]}
    result = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    assert result.stdout == upstream


def test_postgres_volume_matches_data_directory_of_version_18(target):
    assert target["postgres"]["image"].startswith("postgres:18")
    assert "/var/lib/postgresql" in [v["target"] for v in target["postgres"]["volumes"]]


def test_load_generator_needs_only_two_addresses():
    push_url = "http://p:2/api/v1/metrics/write"
    services = config("docker-compose.load.yml", BASE_URL="http://t:1", PUSH_URL=push_url)
    load = services["load"]
    assert load["environment"]["BASE_URL"] == "http://t:1"
    assert load["environment"]["K6_PROMETHEUS_RW_SERVER_URL"] == push_url
    assert load["environment"]["K6_OUT"] == "experimental-prometheus-rw"
    assert load["entrypoint"] == []
    # Not started by default: on the target's host, Alloy measures the generator.
    assert "generator-metrics" not in services
