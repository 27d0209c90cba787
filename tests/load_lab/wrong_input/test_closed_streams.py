"""Closed or full standard streams, and locales without UTF-8, in a shell."""

import os
import subprocess

import pytest

from tests.conftest import LAB

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
COMMANDS = {
    "closed-output": ('"$LAB" status >&-', {}, 0),
    "all-closed": ('"$LAB" list --json <&- >&- 2>&-', {}, 0),
    "reader-that-ends": ('"$LAB" list --json | head -0', {}, 1),
    "full-disk": ('"$LAB" list >/dev/full', {}, 1),
    "ascii-locale": ('"$LAB" run cache-ladder --dry-run', ASCII, 0),
    "ascii-output": ('"$LAB" run cache-ladder --dry-run --quick', {"PYTHONIOENCODING": "ascii"}, 0),
}


@pytest.mark.parametrize(("command", "environ", "code"), COMMANDS.values(), ids=COMMANDS)
def test_odd_stream_ends_without_traceback(tmp_path, command, environ, code):
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env={**os.environ, "LAB": str(LAB), "LAB_STATE_DIR": str(tmp_path), **environ},
        capture_output=True,
        check=False,
    )
    assert result.returncode == code, result.stderr
    assert b"Traceback" not in result.stderr
    assert b"Exception ignored" not in result.stderr
