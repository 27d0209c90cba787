"""One stack with production-like settings for these tests, and the table of their results."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from load_lab.paths import current_state, project
from load_lab.settings import load_settings, update_settings
from load_lab.settings.presets import preset_assignments
from load_lab.stack.choice import docker_problem
from load_lab.stack.docker import DockerEngine
from load_lab.stack.native import NativeEngine
from tests.faults.docker import DockerInjector
from tests.faults.native import NativeInjector
from tests.faults.table import lines

_RESULTS = pytest.StashKey()


def pytest_itemcollected(item):
    """Every test that has a stack takes the machine."""
    if {"stack", "injector"} & set(item.fixturenames):
        item.add_marker("alone")


# A separate project name protects the containers and data of another stack on this machine.
PROJECT = "load-lab-faults"


@pytest.fixture(scope="module", params=["native", pytest.param("docker", marks=pytest.mark.docker)])
def injector(request):
    """Yield the fault injector of a stack with the preset `best` and fresh data, on one engine.

    The stack is removed at the end of the module: other stacks need the same ports.
    """
    if request.param == "docker":
        _require_docker()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPOSE_PROJECT_NAME", PROJECT)
        injector = (
            _native_injector() if request.param == "native" else DockerInjector(DockerEngine())
        )
        injector.remove()
        try:
            injector.engine.up(update_settings(load_settings(), preset_assignments("best")))
            process = injector.engine.exec(
                "backend", ["python", "manage.py", "load_db", "--reload"]
            )
            assert process.returncode == 0, process.stderr
            yield injector
        finally:
            injector.remove()


@pytest.fixture(scope="module")
def stack():
    """Yield the native engine with all services running, for one module: `injector` stops it."""
    engine = NativeEngine(current_state())
    engine.down()
    engine.up(load_settings())
    yield engine
    engine.down()


def _require_docker():
    if os.geteuid() != 0:
        pytest.skip("on the docker engine: a container's process can be killed by root alone")
    if reason := docker_problem():
        pytest.skip(f"on the docker engine: {reason}")


@pytest.fixture(scope="module")
def results():
    """Remove the files that runs leave in results/, at the end of the module."""
    project().results.mkdir(exist_ok=True)
    before = set(project().results.iterdir())
    yield
    for path in set(project().results.iterdir()) - before:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture
def folder(injector):
    """Yield a folder for a load's files: of this machine, a container sees only results/."""
    project().results.mkdir(exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix="faults-", dir=project().results))
    yield path
    shutil.rmtree(path)


def _native_injector():
    state = current_state()
    return NativeInjector(NativeEngine(state), state)


@pytest.fixture(scope="session")
def fault_results(request):
    """Return the results so far, one row per fault."""
    return request.config.stash.setdefault(_RESULTS, [])


def pytest_terminal_summary(terminalreporter, config):
    """Print the table; also write it as JSON to the file named by FAULTS_JSON, if it is set."""
    rows = config.stash.get(_RESULTS, [])
    if not rows:
        return
    terminalreporter.section("faults under load")
    for line in lines(rows):
        terminalreporter.write_line(line)
    if name := os.environ.get("FAULTS_JSON"):
        Path(name).write_text(json.dumps([row.as_json() for row in rows], indent=2) + "\n")
