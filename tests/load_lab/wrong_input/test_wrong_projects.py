"""Projects that can't be used: one sentence, exit code 2."""

import os
import subprocess

import pytest

from tests.support.small_api import SmallApi, serve_api


@pytest.mark.parametrize(
    "argv", [("status",), ("list", "runs"), ("target", "add", "a", "http://a")]
)
def test_unknown_project_is_usage_error(run_lab, monkeypatch, argv):
    monkeypatch.delenv("LAB_STATE_DIR")
    monkeypatch.setenv("LAB_PROJECT", "/no/such/folder")
    assert run_lab(*argv).is_error(2, "There is no folder /no/such/folder for a project")


def test_option_overrides_the_variable(run_lab, monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_PROJECT", str(tmp_path))
    ending = run_lab("--project", "/no/such/folder", "list", "runs")
    assert ending.is_error(2, "There is no folder /no/such/folder for a project")


@pytest.fixture
def read_only(tmp_path):
    """Yield a folder in which not even root can write."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "none", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("this user can write everywhere, and can't mount")
    yield folder
    if mounted.returncode == 0:
        subprocess.run(["umount", str(folder)], check=True)


def test_project_without_write_permission_is_usage_error(run_lab, monkeypatch, read_only):
    monkeypatch.setenv("LAB_PROJECT", str(read_only))
    with serve_api(SmallApi()) as api:
        ending = run_lab("target", "add", "shop", api.url, "--ready", "/api/start/")
    assert ending.is_error(2, f"writes into your project, {read_only}"), ending
