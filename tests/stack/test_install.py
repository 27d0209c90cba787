"""`make setup` installs missing programs, except for the Docker engine, which needs none."""

import pytest

from lab.stack.native import install


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
