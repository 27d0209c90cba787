"""One compose stack for these tests, on a real Docker engine; stopped when they end."""

import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from commands import STATE, checked, environment, run
from engine import docker_engine
from stack import PROJECT, Stack
from standins import remove_names

from lab.analysis.prometheus import Prometheus
from lab.settings import LOOPBACK, load_settings


@pytest.fixture(scope="session")
def say(request):
    """Return a function that prints progress past pytest's capture: setup takes minutes."""
    plugins, started = request.config.pluginmanager, time.monotonic()
    reporter, capture = plugins.getplugin("terminalreporter"), plugins.getplugin("capturemanager")

    def write(line):
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(f"[{time.monotonic() - started:4.0f} s] {line}")

    return write


@pytest.fixture(scope="session")
def stack(say):
    """Start every service, wait until all are healthy, with the small dataset of conftest.py."""
    STATE.mkdir(parents=True, exist_ok=True)
    with docker_engine() as engine:
        say(f"Engine: {engine}")
        made = Stack(_environ())
        made.provide_images()
        for image in made.images:
            say(f"Image {image.name}: {image.origin}")
        for service, why in made.left_out.items():
            say(f"Left out: {service}, since {why}")
        try:
            say("docker compose up -d --wait")
            made.compose("up", "-d", "--wait", "--build")
            say("Up and healthy")
            yield made
        finally:
            _take_down(made)
            say(f"Down; nothing is left but the containers' logs, {STATE / 'compose.log'}")


def _environ() -> dict[str, str]:
    settings = load_settings()
    return {
        "LAB_ENGINE": "docker",
        "COMPOSE_PROJECT_NAME": PROJECT,
        "BASE_URL": settings.target_url,
        "TOXIPROXY_BACKEND_PORT": str(settings.delayed_backend_port),
        "LAB_STATE_DIR": str(STATE / "state"),
    }


def _take_down(made: Stack) -> None:
    logs = run("docker", "compose", "logs", "--no-color", **made.environ).stdout
    (STATE / "compose.log").write_text(logs)
    made.compose("down", "--volumes", "--remove-orphans")
    ours = f"label=com.docker.compose.project={PROJECT}"
    for kind in (("ps", "--all"), ("volume", "ls"), ("network", "ls")):
        assert checked("docker", *kind, "--quiet", "--filter", ours) == ""
    # Later users of this engine must not mistake a stand-in for the official image.
    remove_names()


@pytest.fixture(scope="session")
def prometheus(stack):
    return Prometheus(load_settings().prometheus_url)


@pytest.fixture(scope="session")
def lab_on_docker(lab, stack):
    """Return a function that runs `lab` with the docker engine."""
    return lambda *argv, **environ: lab(*argv, **environment(**stack.environ, **environ))


@pytest.fixture(scope="session")
def push_url(stack):
    """Return the URL to which k6 pushes: Alloy's receiver, or Prometheus without Alloy."""
    if "alloy" in stack.left_out:
        return f"{load_settings().prometheus_url}/api/v1/write"
    return f"http://{LOOPBACK}:{os.environ['LAB_ALLOY_PUSH_PORT']}/api/v1/metrics/write"


@pytest.fixture(scope="session")
def poll():
    """Return a function that polls a condition and fails if it stays false for `seconds`."""

    def until(is_so, *, seconds):
        end = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < end, f"it did not become so within {seconds} s"
            time.sleep(0.25)

    return until


@pytest.fixture(scope="session")
def target():
    """Return the address of the stack's Nginx."""
    return f"http://{LOOPBACK}:{os.environ['LAB_HTTP_PORT']}"
