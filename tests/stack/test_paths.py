"""Where things lie: whose a folder is, and names with spaces in them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.paths import ROOT, State, make_open
from lab.stack.native.supervision import Supervision

# Too deep for a socket's name, which then lies in /tmp.
DEEP = "a" * 100


@pytest.fixture
def state(tmp_path):
    found = State(tmp_path / DEEP)
    assert found.socket.parent.parent == Path("/tmp")
    yield found
    if found.socket.parent.is_symlink():
        found.socket.parent.unlink()
    elif found.socket.parent.exists():
        found.socket.parent.rmdir()


def test_a_socket_in_a_folder_of_another_user_is_not_believed(state, tmp_path):
    """Whoever made the folder could put a supervisor of its own there, whose pids `lab` kills."""
    if os.getuid() == 0:
        state.socket.parent.mkdir()
        os.chown(state.socket.parent, 65534, -1)
    else:
        # What a user who may not give folders away can make of it.
        state.socket.parent.symlink_to(tmp_path)
    with pytest.raises(LabError, match="folder of this user's"):
        assert Supervision(state).alive


def test_one_that_is_ours_or_not_there_is_no_error(state):
    assert not Supervision(state).alive
    state.socket.parent.mkdir(mode=0o700)
    assert not Supervision(state).alive


def test_what_make_clean_removes_is_told_apart_by_what_no_name_has(tmp_path):
    """`xargs -0` takes a name with spaces whole."""
    argv = [sys.executable, "-m", "lab.paths"]
    environ = {**os.environ, "LAB_STATE_DIR": str(tmp_path / "big disk" / "lab")}
    done = subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    names = done.stdout.split("\0")
    assert all(Path(name).is_absolute() for name in names if name)
    assert "\n" not in done.stdout
    makefile = (ROOT / "Makefile").read_text()
    assert "-m lab.paths | xargs -0 -r rm -rf --" in makefile


def test_a_folder_that_was_there_is_its_owners_to_open(tmp_path):
    """/tmp, or one that is nobody's business."""
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o700)
    umask = os.umask(0o077)
    try:
        for folder in (shut, shut, tmp_path / "made"):
            make_open(folder)
    finally:
        os.umask(umask)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("shut", "made")]
    assert modes == [0o700, 0o755]
