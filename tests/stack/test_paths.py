"""Paths of the lab: owners of folders, and names with spaces."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from load_lab.errors import LabError
from load_lab.paths import ROOT, State, make_open
from load_lab.stack.native.supervision import Supervision

# Too long for a socket's path, so the socket is placed in /tmp.
DEEP = "a" * 100


@pytest.fixture
def state(tmp_path):
    state = State(tmp_path / DEEP)
    assert state.socket.parent.parent == Path("/tmp")
    yield state
    if state.socket.parent.is_symlink():
        state.socket.parent.unlink()
    elif state.socket.parent.exists():
        state.socket.parent.rmdir()


def test_socket_in_folder_of_another_user_is_rejected(state, tmp_path):
    """That user could run a fake supervisor there, and `lab` would kill the pids it reports."""
    if os.getuid() == 0:
        state.socket.parent.mkdir()
        os.chown(state.socket.parent, 65534, -1)
    else:
        # Without root, the folder's owner cannot be changed, but a symlink can be created.
        state.socket.parent.symlink_to(tmp_path)
    with pytest.raises(LabError, match="folder of this user's"):
        assert Supervision(state).alive


def test_missing_or_own_socket_folder_is_accepted(state):
    assert not Supervision(state).alive
    state.socket.parent.mkdir(mode=0o700)
    assert not Supervision(state).alive


def test_paths_for_make_clean_are_separated_by_nul(tmp_path):
    """`xargs -0` does not split names with spaces."""
    argv = [sys.executable, "-m", "load_lab.paths"]
    environ = {**os.environ, "LAB_STATE_DIR": str(tmp_path / "big disk" / "lab")}
    result = subprocess.run(argv, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    names = result.stdout.split("\0")
    assert all(Path(name).is_absolute() for name in names if name)
    assert "\n" not in result.stdout
    makefile = (ROOT / "Makefile").read_text()
    assert "-m load_lab.paths | xargs -0 -r rm -rf --" in makefile


def test_existing_folder_keeps_its_mode(tmp_path):
    """It may be /tmp or a private folder."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    umask = os.umask(0o077)
    try:
        for folder in (private, private, tmp_path / "new"):
            make_open(folder)
    finally:
        os.umask(umask)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("private", "new")]
    assert modes == [0o700, 0o755]
