"""One stack for these tests, as a careful team would run it, and the table of what they found."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from lab.paths import RESULTS, current_state
from lab.settings import changed, load_settings
from lab.settings.presets import preset_assignments
from lab.stack.choice import why_not_docker
from lab.stack.docker import DockerEngine
from lab.stack.native import NativeEngine
from tests.faults.docker import DockerHand
from tests.faults.native import NativeHand
from tests.faults.table import lines

_FIGURES = pytest.StashKey()


# Its own: a stack that runs here otherwise keeps its containers and its data.
PROJECT = "load-lab-faults"


@pytest.fixture(scope="module", params=["native", "docker"])
def hand(request):
    """The stack under `best` on one engine, its data as they were made, and what breaks it.

    Gone when its module ends: others' stacks need the same ports.
    """
    if request.param == "docker":
        _require_docker()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPOSE_PROJECT_NAME", PROJECT)
        breaks = _native() if request.param == "native" else DockerHand(DockerEngine())
        breaks.remove()
        try:
            breaks.engine.up(changed(load_settings(), preset_assignments("best")))
            done = breaks.engine.exec("backend", ["python", "manage.py", "load_db", "--reload"])
            assert done.returncode == 0, done.stderr
            yield breaks
        finally:
            breaks.remove()


def _require_docker():
    if os.geteuid() != 0:
        pytest.skip("on the docker engine: a container's process can be killed by root alone")
    if reason := why_not_docker():
        pytest.skip(f"on the docker engine: {reason}")


@pytest.fixture(scope="module")
def results():
    """What runs leave in results/ goes with the module."""
    RESULTS.mkdir(exist_ok=True)
    before = set(RESULTS.iterdir())
    yield
    for path in set(RESULTS.iterdir()) - before:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture
def folder(hand):
    """For a load's files: a container sees results/ and no other folder of this machine."""
    RESULTS.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="faults-", dir=RESULTS))
    yield made
    shutil.rmtree(made)


def _native():
    state = current_state()
    return NativeHand(NativeEngine(state), state)


@pytest.fixture(scope="session")
def figures(request):
    """What was found so far, a row for each fault."""
    return request.config.stash.setdefault(_FIGURES, [])


def pytest_terminal_summary(terminalreporter, config):
    """The table; with FAULTS_JSON also as JSON in the file that it names."""
    rows = config.stash.get(_FIGURES, [])
    if not rows:
        return
    terminalreporter.section("faults under load")
    for line in lines(rows):
        terminalreporter.write_line(line)
    if name := os.environ.get("FAULTS_JSON"):
        Path(name).write_text(json.dumps([row.as_json() for row in rows], indent=2) + "\n")
