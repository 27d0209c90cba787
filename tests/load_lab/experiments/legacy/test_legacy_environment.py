"""Environments of the old stacks: found, made, or reported as unavailable."""

import sys

import pytest

from load_lab.errors import LabError
from load_lab.experiments.legacy import arms, environment, stacks
from load_lab.experiments.legacy.environment import MissingRequirement, check_compiler, find_python
from load_lab.settings import load_settings

STACK = stacks.stack("django-3.0-asgiref-3.2")


@pytest.fixture
def empty_path(monkeypatch, tmp_path):
    """Set an empty PATH and an empty pyenv; return the folder of both."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def _program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_missing_python_is_reported_with_searched_paths(empty_path):
    with pytest.raises(MissingRequirement) as error:
        find_python("3.6")
    assert str(error.value) == (
        "Python 3.6 is not here: no python3.6 on the PATH and none in "
        f"{empty_path}/pyenv/versions. Get it, for example with: pyenv install 3.6"
    )


def test_pyenv_shim_without_version_is_rejected(empty_path):
    shim = _program(
        empty_path / "python3.6", "echo 'pyenv: python3.6: command not found' >&2; exit 1"
    )
    with pytest.raises(MissingRequirement, match=f"{shim} does not run"):
        find_python("3.6")
    versions = empty_path / "pyenv/versions"
    for version in ("3.6.9", "3.6.15", "3.60.1"):
        _program(versions / version / "bin/python3.6", "echo 3.6")
    assert find_python("3.6") == versions / "3.6.15/bin/python3.6"


def test_missing_compiler_is_reported(empty_path):
    with pytest.raises(MissingRequirement, match="C compiler is not here"):
        check_compiler()


@pytest.fixture
def small_stack(monkeypatch, tmp_path):
    """Return a stack with this Python's version and without pins."""
    monkeypatch.setattr(stacks, "FOLDER", tmp_path)
    monkeypatch.setattr(environment, "BOOTSTRAP", tmp_path / "bootstrap.txt")
    monkeypatch.setattr(environment, "ENVIRONMENTS", tmp_path / "environments")
    (tmp_path / "bootstrap.txt").touch()
    (tmp_path / "small").mkdir()
    (tmp_path / "small/requirements.txt").touch()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return STACK.model_copy(update={"name": "small", "python": version})


# A fake Python, since a real environment takes 30 s; test_legacy_arms.py makes a real one.
QUICK_PYTHON = """
case "$2" in
    venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    pip) echo "$*" >>"$(dirname "$0")/installed" ;;
esac
"""


def test_environment_is_made_once_and_remade_if_incomplete(
    small_stack, monkeypatch, capsys, tmp_path
):
    python = _program(tmp_path / "python", QUICK_PYTHON)
    monkeypatch.setattr(environment, "find_python", lambda _: python)
    remains = environment.folder_of(small_stack) / "left-by-an-earlier-try"
    remains.parent.mkdir(parents=True)
    remains.touch()
    programs = environment.make(small_stack)
    installed = (programs / "installed").read_text().splitlines()
    assert [line.split()[-1] for line in installed] == [
        *(str(environment.BOOTSTRAP), str(small_stack.requirements)),
    ]
    assert all("--require-hashes" in line for line in installed)
    assert not remains.exists()
    assert "Making the environment of Django 3.0.14, asgiref 3.2.10" in capsys.readouterr().err
    assert environment.make(small_stack) == programs
    assert capsys.readouterr().err == ""


def test_different_pin_needs_different_environment(small_stack):
    before = environment.folder_of(small_stack)
    small_stack.requirements.write_text("six==1.16.0\n")
    assert environment.folder_of(small_stack) != before


def test_unreachable_package_index_is_reported_with_reason(small_stack, monkeypatch, tmp_path):
    python = tmp_path / "python"
    monkeypatch.setattr(environment, "find_python", lambda _: python)
    message = "Failed to establish a new connection: [Errno -2] Name or service not known"
    _program(python, f"echo '{message}' >&2; exit 1")
    with pytest.raises(MissingRequirement, match=r"needs the package index[\s\S]*Errno -2"):
        environment.make(small_stack)
    assert not environment.is_complete(small_stack)


@pytest.mark.parametrize(
    "message", ["THESE PACKAGES DO NOT MATCH THE HASHES", "error: command 'gcc' failed", "Killed"]
)
def test_other_installation_failure_is_an_error(small_stack, monkeypatch, tmp_path, message):
    python = _program(tmp_path / "python", f'echo "{message}" >&2; exit 1')
    monkeypatch.setattr(environment, "find_python", lambda _: python)
    with pytest.raises(LabError, match="could not be made") as error:
        environment.make(small_stack)
    assert not isinstance(error.value, MissingRequirement)
    assert message in str(error.value)


class _Runner:
    """Runner that fails for every stack, each with a different error."""

    def make(self, stack):
        raise {"channels-2016": MissingRequirement("no Python")}.get(
            stack.name, LabError("a wrong hash")
        )


def test_failed_stack_is_not_reported_as_unavailable(monkeypatch, capsys):
    monkeypatch.setattr(arms, "runner_for", lambda *_: _Runner())
    reasons = arms.missing_stacks(
        None, load_settings(), ["django-3.0-asgiref-3.2", "channels-2016"]
    )
    assert reasons == {"channels-2016": "no Python"}
    assert "django-3.0-asgiref-3.2 can't be made: a wrong hash" in capsys.readouterr().err
