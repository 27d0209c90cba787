"""One stack for these tests, as a careful team would run it, and the table of what they found."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from lab.engine.choice import why_not_docker
from lab.engine.docker import DockerEngine
from lab.engine.native import NativeEngine
from lab.paths import RESULTS, current_state
from lab.presets import preset_assignments
from lab.settings import changed, load_settings
from tests.faults.docker import DockerHand
from tests.faults.native import NativeHand
from tests.faults.table import lines

_FIGURES = pytest.StashKey()


@pytest.fixture(scope="session", params=["native", "docker"])
def hand(request):
    """The stack under `best` on one engine, its data as they were made, and what breaks it."""
    reason = why_not_docker() if request.param == "docker" else None
    if reason:
        pytest.skip(f"on the docker engine: {reason}")
    breaks = _native() if request.param == "native" else DockerHand(DockerEngine())
    breaks.engine.down()
    breaks.engine.up(changed(load_settings(), preset_assignments("best")))
    try:
        done = breaks.engine.exec("backend", ["python", "manage.py", "load_db", "--reload"])
        assert done.returncode == 0, done.stderr
        yield breaks
    finally:
        breaks.engine.down()


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
