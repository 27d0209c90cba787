"""What `make setup` gets: nothing where containers have it all."""

import pytest

from lab.stack.native import install


class Asked(Exception):
    """The programs were looked for."""


@pytest.fixture
def _no_programs(monkeypatch):
    def find(_):
        raise Asked

    monkeypatch.setattr(install, "find", find)


@pytest.mark.usefixtures("_no_programs")
def test_the_docker_engine_needs_no_package_and_no_go(monkeypatch, capsys):
    monkeypatch.setenv("LAB_ENGINE", "docker")
    monkeypatch.setattr("sys.argv", ["install"])
    install.main()
    assert "LAB_ENGINE=docker" in capsys.readouterr().err


@pytest.mark.usefixtures("_no_programs")
@pytest.mark.parametrize(
    ("engine", "argv"), [("auto", []), ("native", []), ("docker", ["--with-docker"])]
)
def test_every_other_gets_what_is_missing(monkeypatch, engine, argv):
    monkeypatch.setenv("LAB_ENGINE", engine)
    monkeypatch.setattr("sys.argv", ["install", *argv])
    with pytest.raises(Asked):
        install.main()
