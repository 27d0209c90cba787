"""Which folder is the user's project, and what lies in it."""

import os

import pytest

from load_lab.errors import UsageError
from load_lab.paths import Project, current_state, lab_file, project, project_of_new_target


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """Return an empty home folder, which is the current one."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("LAB_STATE_DIR")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("mark", ["targets", ".lab"])
def test_project_is_nearest_parent_with_targets_or_state(home, monkeypatch, mark):
    below = home / "shop/src/deep"
    below.mkdir(parents=True)
    (home / "shop" / mark).mkdir()
    monkeypatch.chdir(below)
    assert project() == Project(home / "shop")
    assert current_state().base == home / "shop/.lab"


def test_file_of_that_name_makes_no_project(home, monkeypatch):
    (home / "shop").mkdir()
    (home / "shop/targets").write_text("")
    monkeypatch.chdir(home / "shop")
    assert project().is_checkout


def test_home_is_never_a_project(home, monkeypatch):
    (home / "targets").mkdir()
    (home / "shop").mkdir()
    monkeypatch.chdir(home / "shop")
    assert project() == Project(lab_file())


def test_checkout_is_the_project_of_its_folders_and_of_none(monkeypatch, tmp_path):
    assert project().is_checkout
    monkeypatch.chdir(lab_file("docs"))
    assert project().is_checkout
    assert project_of_new_target().is_checkout


def test_named_project_wins(home, monkeypatch):
    (home / "shop/.lab").mkdir(parents=True)
    (home / "empty").mkdir()
    monkeypatch.chdir(home / "shop")
    monkeypatch.setenv("LAB_PROJECT", "../empty")
    assert project() == Project(home / "empty")


def test_new_target_makes_the_current_folder_a_project(home, monkeypatch):
    (home / "new").mkdir()
    monkeypatch.chdir(home / "new")
    assert project().is_checkout
    assert project_of_new_target() == Project(home / "new")


@pytest.mark.parametrize("folder", ["~", "/"])
def test_new_target_never_makes_home_or_root_a_project(monkeypatch, folder):
    monkeypatch.chdir(os.path.expanduser(folder))  # noqa: PTH111
    with pytest.raises(UsageError, match="can't be a project"):
        project_of_new_target()


def test_project_inside_another_must_be_named(home, monkeypatch):
    inner = home / "shop/vendor/app"
    (inner / "targets").mkdir(parents=True)
    (home / "shop/.lab").mkdir()
    monkeypatch.chdir(inner)
    with pytest.raises(UsageError, match=f"inside another.* lab --project {inner} "):
        project()
    monkeypatch.setenv("LAB_PROJECT", str(inner))
    assert project() == Project(inner)


@pytest.mark.parametrize(
    ("named", "message"),
    [("missing", "There is no folder missing"), ("/", "/ can't be a project"), ("~", "can't be")],
)
def test_folder_that_can_not_be_a_project_is_rejected(monkeypatch, named, message):
    monkeypatch.setenv("LAB_PROJECT", named)
    with pytest.raises(UsageError, match=message):
        project()
