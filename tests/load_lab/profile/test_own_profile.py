"""`lab profile --target` of a small app, and of what can't be profiled."""

import shutil

import pytest

from load_lab.errors import LabError
from load_lab.paths import ROOT
from load_lab.profile.recorder import check_permission, find_server
from load_lab.targets.declared import find_target
from tests.support.six_targets import write_target


def test_own_app_is_profiled_without_postgres(lab, stack, tmp_path):
    path = write_target(tmp_path, "function", ("report", "health"))
    argv = ("--target", str(path), "--only", "GET /report/", "--duration", "3s")
    result = lab("profile", *argv)
    assert result.code == 0, result.err
    document = lab("show", _testid(result.out), "--json").json
    assert document["hottest"][0]["function"] == "with_taxes"
    own = {each["function"]: each["where"].partition(":")[0] for each in document["own"]}
    assert own.items() >= {("report", "app.py"), ("with_taxes", "app.py")}
    assert document["load"] | {"ONLY": "GET /report/", "VUS": "4"} == document["load"]
    assert document["statements"] == []
    assert f"Statements: none, postgres is not named in {path}" in result.out.replace("\n", "")
    *_, last = result.out.strip().splitlines()
    assert last.startswith("GET /report/: with_taxes (app.py:")
    shutil.rmtree(ROOT / document["files"]["svg"].rpartition("/")[0])


def _testid(out):
    return next(word for word in out.split() if "profile-" in word).split("/")[1]


def test_program_without_python_is_named(stack):
    with pytest.raises(LabError, match=r"look into prometheus .* reads CPython alone"):
        check_permission(stack.pids()["prometheus"])


def _target(folder, url):
    path = folder / "shop.toml"
    path.write_text(f'url = "{url}"\n')
    return find_target(str(path))


def test_proxy_in_front_of_an_app_is_named(stack, tmp_path):
    with pytest.raises(LabError, match=r"^nginx .* a proxy.* Change url in the file of"):
        find_server(_target(tmp_path, stack.settings().target_url))


def test_server_that_is_not_visible_is_named(tmp_path):
    with pytest.raises(LabError, match="are not visible from here"):
        find_server(_target(tmp_path, "http://127.0.0.1:9"))


def test_option_of_the_reference_app_is_refused_for_a_target(lab):
    result = lab("profile", "--target", "shop", "--scenario", "list")
    assert result.is_one_message(2)
    assert "--scenario list is one of the reference app" in result.err
