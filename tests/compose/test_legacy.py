"""Arms of the old stacks as containers, next to the compose stack."""

import re

import httpx
import pytest

from load_lab.experiments.legacy.arms import arm
from load_lab.experiments.legacy.stacks import stack as stack_named
from load_lab.stack.docker import LEGACY_LABEL, DockerEngine
from tests.compose.commands import run
from tests.compose.standins import provide_old_python


@pytest.fixture(scope="module")
def up(lab_on_docker):
    result = lab_on_docker("up", "--json")
    assert result.code == 0, result.err


@pytest.fixture
def engine(up, stack, monkeypatch):
    from tests.compose.commands import environment

    for name, value in environment(**stack.environ).items():
        monkeypatch.setenv(name, value)
    return DockerEngine()


@pytest.fixture
def provide_base(report):
    """Return a function that provides a stack's base image, or skips with the reason."""

    def provide(name):
        text = (stack_named(name).folder / "Dockerfile").read_text()
        image = provide_old_python(re.search(r"BASE_IMAGE=(\S+)", text)[1])
        if image.missing:
            pytest.skip(f"{image.name} {image.origin}")
        report(f"Image {image.name}: {image.origin}")
        return name

    return provide


@pytest.mark.parametrize(
    ("name", "arm_name", "server", "route", "processes"),
    [
        ("channels-2016", "gunicorn-2", "gunicorn", "hello", 1),
        ("channels-2016", "daphne-ipc", "channels", "hello", 2),
        ("channels-2016", "daphne-redis-own-cpu", "channels", "hello", 3),
        ("django-3.0-asgiref-3.2", "daphne-1", "daphne", "random-row-lock", 1),
        ("django-3.0-asgiref-3.2", "gunicorn-5", "gunicorn", "pg-sleep", 1),
    ],
)
def test_arm_answers_and_leaves_no_container(
    engine, provide_base, name, arm_name, server, route, processes
):
    with arm(engine, provide_base(name), arm_name) as running:
        assert running.facts["server"] == server
        assert len(running.target.pids) == processes
        response = httpx.get(f"{running.target.url}/workbench/{route}/", timeout=20)
        assert response.status_code == 200, response.text
    assert run("docker", "ps", "--all", "--quiet", "--filter", f"label={LEGACY_LABEL}").stdout == ""
