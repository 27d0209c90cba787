"""One compose stack for these tests, on a real Docker engine; stopped when they end."""

import os
import time

import pytest

from load_lab.metrics.prometheus import Prometheus
from load_lab.settings import LOOPBACK, load_settings
from load_lab.stack.docker import DockerEngine
from tests.compose.commands import STATE, check_output, environment, run
from tests.compose.engine import docker_engine
from tests.compose.stack import PROJECT, Stack
from tests.compose.standins import remove_names


def pytest_itemcollected(item):
    """Every test here takes the machine, and the ports of the other stacks."""
    for mark in ("compose", "alone", "full"):
        item.add_marker(mark)


@pytest.fixture(scope="session")
def report(request):
    """Return a function that prints progress past pytest's capture: setup takes minutes."""
    plugins, started = request.config.pluginmanager, time.monotonic()
    reporter, capture = plugins.getplugin("terminalreporter"), plugins.getplugin("capturemanager")

    def write(line):
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(f"[{time.monotonic() - started:4.0f} s] {line}")

    return write


@pytest.fixture(scope="session")
def stack(report):
    """Start every service, wait until all are healthy, with the small dataset of conftest.py."""
    STATE.mkdir(parents=True, exist_ok=True)
    with docker_engine() as engine:
        report(f"Engine: {engine}")
        compose_stack = Stack(_environ())
        compose_stack.provide_images()
        for image in compose_stack.images:
            report(f"Image {image.name}: {image.origin}")
        for service, reason in compose_stack.missing.items():
            report(f"Left out: {service}, since {reason}")
        if os.environ.get("COMPOSE_IMAGES") == "all":
            assert not compose_stack.missing, "COMPOSE_IMAGES=all, but services are left out"
        try:
            report("docker compose up -d --wait")
            compose_stack.compose("up", "-d", "--wait", "--build")
            report("Up and healthy")
            yield compose_stack
        finally:
            _take_down(compose_stack)
            report(f"Down; nothing is left but the containers' logs, {STATE / 'compose.log'}")


def _environ() -> dict[str, str]:
    settings = load_settings()
    return {
        "LAB_ENGINE": "docker",
        "COMPOSE_PROJECT_NAME": PROJECT,
        "BASE_URL": settings.target_url,
        "TOXIPROXY_BACKEND_PORT": str(settings.delayed_backend_port),
        "LAB_STATE_DIR": str(STATE / "state"),
    }


def _take_down(compose_stack: Stack) -> None:
    logs = run("docker", "compose", "logs", "--no-color", **compose_stack.environ).stdout
    (STATE / "compose.log").write_text(logs)
    compose_stack.compose("down", "--volumes", "--remove-orphans")
    label = f"label=com.docker.compose.project={PROJECT}"
    for kind in (("ps", "--all"), ("volume", "ls"), ("network", "ls")):
        assert check_output("docker", *kind, "--quiet", "--filter", label) == ""
    # Later users of this engine must not mistake a stand-in for the official image.
    remove_names()


@pytest.fixture(scope="session")
def prometheus(stack):
    return Prometheus(load_settings().prometheus_url)


@pytest.fixture(scope="session")
def lab_on_docker(lab, stack):
    """Return a function that runs `lab` with the docker engine."""
    return lambda *argv, **environ: lab(*argv, **environment(**(stack.environ | environ)))


@pytest.fixture(scope="module")
def up(lab_on_docker):
    """Start the stack with `lab up`, which a later `lab` then finds; return its output."""
    result = lab_on_docker("up", "--json")
    assert result.code == 0, result.err
    return result.json


@pytest.fixture
def engine(up, stack, monkeypatch):
    """Return the docker engine, in the environment of the stack."""
    for name, value in environment(**stack.environ).items():
        monkeypatch.setenv(name, value)
    return DockerEngine()


@pytest.fixture(scope="session")
def push_url(stack):
    """Return the URL to which k6 pushes: Alloy's receiver, or Prometheus without Alloy."""
    if "alloy" in stack.missing:
        return f"{load_settings().prometheus_url}/api/v1/write"
    return f"http://{LOOPBACK}:{os.environ['LAB_ALLOY_PUSH_PORT']}/api/v1/metrics/write"


@pytest.fixture(scope="session")
def poll():
    """Return a function that polls a condition and fails if it stays false for `seconds`."""

    def until(condition, *, seconds):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"the condition was not true within {seconds} s"
            time.sleep(0.25)

    return until


@pytest.fixture(scope="session")
def target():
    """Return the address of the stack's Nginx."""
    return f"http://{LOOPBACK}:{os.environ['LAB_HTTP_PORT']}"
