"""Full and read-only disks: one message without a traceback, and a stack that goes on."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from load_lab.paths import project

LAB = Path(sys.executable).parent / "lab"
SMOKE = ("k6", "smoke", "--duration", "5s")
# A file system of its own, seen by this command alone.
_MOUNT = 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"'


@pytest.fixture
def lab_on_disk():
    """Return a function that runs `lab` with results/ on a file system with these options."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("This user may not mount file systems.")
    project().results.mkdir(exist_ok=True)

    def run(options, *argv):
        script = [
            "unshare",
            "--mount",
            "bash",
            "-c",
            _MOUNT,
            "bash",
            options,
            str(project().results),
        ]
        return subprocess.run(
            [*script, str(LAB), *argv], capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [("ro", 2, "Read-only file system"), ("size=16k", 1, "No space left on device")],
)
def test_disk_of_results_is_named(stack, lab_on_disk, options, code, reason):
    result = lab_on_disk(options, *SMOKE)
    assert result.returncode == code
    assert "Traceback" not in result.stdout + result.stderr
    assert reason in result.stderr
    assert "results" in result.stderr
    assert stack.stop_load() == 0
    assert httpx.get(f"{stack.settings().target_url}/api/hotel/").status_code == 200
