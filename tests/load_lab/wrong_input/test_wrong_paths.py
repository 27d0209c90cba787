"""Folders whose names Nginx, supervisor or pip would read as something else."""

import shutil
import subprocess

import pytest

from load_lab.paths import ROOT

NAMES = ["a b", "a;b", "a%sb", "a$HOME", 'a"b', "a'b", "a\\b", "a{b}", "a#b", "a[b", "a\tb"]


@pytest.mark.parametrize("name", NAMES)
def test_stack_refuses_a_state_directory_with_special_characters(
    run_lab, monkeypatch, tmp_path, name
):
    monkeypatch.setenv("LAB_ENGINE", "native")
    monkeypatch.setenv("LAB_STATE_DIR", str(tmp_path / name))
    assert run_lab("up").is_error(1, "Nothing was started. Choose another LAB_STATE_DIR")


@pytest.mark.parametrize(
    ("name", "message"),
    [*((name, "Move the project") for name in NAMES), ("Müller-2_a.b", "is not on the PATH")],
)
def test_setup_refuses_a_folder_with_special_characters(tmp_path, name, message):
    script = tmp_path / name / "native/make-venv.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "native/make-venv.sh", script)
    argv = [str(script), "no-such-python"]
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert message in result.stderr
