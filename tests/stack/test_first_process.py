"""A container's first process stops on TERM, which has no default action for process 1."""

import os
import shutil
import subprocess

import psutil
import pytest

from load_lab.paths import ROOT
from load_lab.settings import update_settings
from load_lab.stack.native.services.start_order import backend_env
from load_lab.stack.native.supervision import is_alive, wait_for

UNSHARE = ["unshare", "--pid", "--fork", "--kill-child"]


def _namespace_problem():
    if not shutil.which("unshare"):
        return "there is no `unshare`"
    result = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    return result.stderr.strip() if result.returncode else ""


@pytest.mark.skipif(bool(_namespace_problem()), reason=f"No PID namespace: {_namespace_problem()}")
@pytest.mark.parametrize(
    ("argv", "setting"),
    [
        (["bin/unless-off", "off", "bin/serve", "beside"], "LAB_SECOND_SERVER=off"),
        (["bin/unless-off", "on", "bin/serve", "worker"], "LAB_WORKBENCH=on"),
    ],
)
def test_first_process_stops_on_term(stack, argv, setting):
    settings = update_settings(stack.settings(), [setting])
    env = os.environ | settings.as_env() | backend_env(settings, stack._state)
    # As in a container: from the environment.
    del env["BACKEND_SETTINGS_FILE"]
    outer = subprocess.Popen([*UNSHARE, *argv], cwd=ROOT / "backend", env=env)
    try:
        first = _first_process(outer.pid)
        wait_for(lambda: _has_started(first, setting), seconds=20, what="The started process")
        wait_for(lambda: _has_ended(first), seconds=5, what="Its end after TERM")
        assert outer.wait(5) == 0
    finally:
        outer.kill()
        outer.wait(5)


def _first_process(pid):
    outer = psutil.Process(pid)
    wait_for(outer.children, seconds=5, what="The first process")
    return outer.children()[0]


def _has_started(first, setting):
    """Return whether this is the marked worker or, if the setting is off, a waiting shell."""
    if setting == "LAB_WORKBENCH=on":
        return "lab-worker=" in " ".join(first.cmdline())
    return [child.name() for child in first.children()] == ["sleep"]


def _has_ended(first):
    """Send TERM on every call, as the process may not have installed its handler yet."""
    if is_alive(first):
        first.terminate()
    return not is_alive(first)
