"""One stack for these tests, as a careful team would run it, and the table of what they found."""

import json
import os
from pathlib import Path

import pytest

from lab.engine.native import NativeEngine
from lab.paths import current_state
from lab.presets import preset_assignments
from lab.settings import changed, load_settings
from tests.faults.native import NativeHand
from tests.faults.table import lines

_FIGURES = pytest.StashKey()


@pytest.fixture(scope="session")
def hand():
    """The stack under `best`, its data as they were made, and what breaks it."""
    state = current_state()
    engine = NativeEngine(state)
    engine.down()
    engine.up(changed(load_settings(), preset_assignments("best")))
    try:
        done = engine.exec("backend", ["python", "manage.py", "load_db", "--reload"])
        assert done.returncode == 0, done.stderr
        yield NativeHand(engine, state)
    finally:
        engine.down()


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
