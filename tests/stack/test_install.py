"""`make setup` installs missing programs, except for the Docker engine, which needs none."""

import shutil

import pytest

from load_lab.errors import LabError
from load_lab.load.kubernetes.manifests import IMAGE
from load_lab.paths import ROOT
from load_lab.stack.native import engine, install
from load_lab.stack.native.builds import K6, K6_VERSION


class ProgramSearch(Exception):
    """The installer looked for programs."""


@pytest.fixture
def _no_programs(monkeypatch):
    def find(_):
        raise ProgramSearch

    monkeypatch.setattr(install, "find", find)


@pytest.mark.usefixtures("_no_programs")
def test_docker_engine_needs_no_packages_and_no_go(monkeypatch, capsys):
    monkeypatch.setenv("LAB_ENGINE", "docker")
    monkeypatch.setattr("sys.argv", ["install"])
    install.main()
    assert "LAB_ENGINE=docker" in capsys.readouterr().err


@pytest.mark.usefixtures("_no_programs")
@pytest.mark.parametrize(
    ("engine", "argv"), [("auto", []), ("native", []), ("docker", ["--with-docker"])]
)
def test_other_engines_install_missing_programs(monkeypatch, engine, argv):
    monkeypatch.setenv("LAB_ENGINE", engine)
    monkeypatch.setattr("sys.argv", ["install", *argv])
    with pytest.raises(ProgramSearch):
        install.main()


def _program(folder, version):
    """Create a k6 that prints its version."""
    folder.mkdir(parents=True)
    program = folder / "k6"
    program.write_text(f"#!/bin/sh\necho 'k6 v{version} (go1.26.8, linux/amd64)'\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("version", "is_used"),
    [("1.8.1", True), ("2.0.0", True), (K6_VERSION, True), ("1.7.1", False), ("3.0.0", False)],
)
def test_k6_on_the_path_is_used_from_1_8_1_on(monkeypatch, tmp_path, version, is_used):
    program = _program(tmp_path / "path", version)
    monkeypatch.setattr(install, "find", {"k6": program}.get)
    assert install._has_k6() is is_used


@pytest.mark.parametrize(("version", "is_used"), [(K6_VERSION, True), ("1.8.1", False)])
def test_k6_below_the_project_has_the_pinned_version(monkeypatch, tmp_path, version, is_used):
    monkeypatch.setattr(install, "BIN", tmp_path / "bin")
    program = _program(tmp_path / "bin", version)
    monkeypatch.setattr(install, "find", {"k6": program}.get)
    assert install._has_k6() is is_used


@pytest.mark.parametrize(
    ("version", "is_older"), [("1.8.1", True), ("2.0.0", True), ("2.1.0", False), ("2.2.0", False)]
)
def test_older_k6_gets_the_older_variable_for_histograms(tmp_path, version, is_older):
    name = "K6_PROMETHEUS_RW_TREND_AS_NATIVE_HISTOGRAM"
    env = engine._histograms_env(_program(tmp_path / version, version))
    assert env == ({name: "true"} if is_older else {})
    readme = (ROOT / "k6/README.md").read_text()
    assert f"export {name}=true" in readme


def test_version_of_k6_is_the_same_everywhere():
    assert f"go.k6.io/k6/v2 v{K6_VERSION} " in (K6.module / "go.mod").read_text()
    assert f"grafana/k6:{K6_VERSION}" == IMAGE
    assert f"LAB_K6_IMAGE:-{IMAGE}}}" in (ROOT / "docker-compose.load.yml").read_text()


def test_system_without_apt_is_told_what_is_missing(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(LabError) as failure:
        install._unpack(["nginx", "postgresql"])
    assert str(failure.value) == (
        "This system has no apt, and these packages are missing: nginx, postgresql. Put their "
        "programs on the PATH, then run `make setup` again; or use Docker: LAB_ENGINE=docker."
    )
