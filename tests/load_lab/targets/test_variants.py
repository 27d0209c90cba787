"""Variants of a target, which the lab starts: options, environment, command, commit."""

import json
import shutil
import subprocess
import sys

import pytest

from load_lab.paths import ROOT, project
from load_lab.stack.native.supervision import port_is_open
from tests.support.ports import free_port

SERVER = ROOT / "tests/support/variant_app/server.py"
MIX = {
    "mix_version": 1,
    "source": "a test",
    "operations": [
        {
            "name": "GET /version",
            "method": "GET",
            "weight": 1,
            "expect": 200,
            "requests": [{"path": "/version"}],
        }
    ],
}
EXPERIMENT = """
schema_version = 1
repeats = 1
title = "Variants"
question = "Which variant answers?"
source = "a test"
target = "{target}"

[[axis]]
name = "variant"

[axis.positions.base]
title = "as the file says"
workload = {{ profile = "hold", rate = 20, duration = "7s" }}
target = {{ expect = {{ path = "/version", contains = "new one no" }} }}

[axis.positions.set]
title = "an option and a variable"
workload = {{ profile = "hold", rate = 20, duration = "7s" }}

[axis.positions.set.target]
options = {{ word = "two" }}
env = {{ SHOP = "${{SHOP_WORD}}" }}
expect = {{ path = "/version", contains = "new two secret" }}

[axis.positions.commit]
title = "an older commit"
workload = {{ profile = "hold", rate = 20, duration = "7s" }}
target = {{ git = "first", expect = {{ path = "/version", contains = "old one no" }} }}

[axis.positions.cached]
title = "a cache in front"
workload = {{ profile = "hold", rate = 20, duration = "7s" }}
target = {{ cache = "protected" }}

[axis.positions.wrong]
title = "not what it says"
workload = {{ profile = "hold", rate = 20, duration = "7s" }}
target = {{ expect = {{ path = "/version", contains = "newest" }} }}

[[claims]]
id = "answered"
text = "Every variant answers"
measures = {{ base = "requests('base')", set = "requests('set')", commit = "requests('commit')" }}
holds = "min(base, set, commit) > 130"
"""


@pytest.fixture
def app(tmp_path):
    """Make a repository with two commits of the server, a target file and its mix."""
    folder = tmp_path / "shop"
    folder.mkdir()
    shutil.copy(SERVER, folder / "server.py")
    _git(folder, "init", "--quiet")
    _commit(folder, "one")
    _git(folder, "tag", "first")
    (folder / "server.py").write_text(SERVER.read_text().replace('"old"', '"new"'))
    _commit(folder, "two")
    (folder / "shop.toml").write_text(
        f'url = "http://127.0.0.1:{free_port()}"\nready = "/version"\n'
        f'[start]\ncommand = ["{sys.executable}", "server.py", "{{port}}", "{{word}}"]\n'
        'prepare = ["touch", "prepared"]\noptions = { word = "one", port = 0 }\n'
        '[reset]\ncommand = ["sh", "-c", "echo again >> resets"]\n'
        '[cache]\nseconds = 60\noperations = ["GET /version"]\n'
    )
    text = (folder / "shop.toml").read_text()
    port = text.split(":")[2].split('"')[0]
    (folder / "shop.toml").write_text(text.replace("port = 0", f"port = {port}"))
    (folder / "shop.mix.json").write_text(json.dumps(MIX))
    return folder


@pytest.mark.full
def test_experiment_measures_variants_of_a_target(lab, stack, app, tmp_path):
    file = tmp_path / "my-variants.toml"
    file.write_text(EXPERIMENT.format(target=app / "shop.toml"))
    run = lab("run", str(file), "--json", SHOP_WORD="secret-word")
    assert run.code == 1
    assert "wrong, repeat 1: " in run.err
    assert "without newest, so it is not the variant" in run.err
    folder = max(project().results.glob("my-variants-*"), key=lambda path: path.stat().st_mtime)
    cells = [json.loads(path.read_text()) for path in sorted(folder.glob("cells/*/cell.json"))]
    assert [cell["state"] for cell in cells] == ["measured"] * 4 + ["failed"]
    assert cells[1]["variant"]["options"] == {"word": "two"}
    assert cells[2]["variant"]["git"] == _git(app, "rev-parse", "first")
    assert all(cell["cpu_ms_per_request"]["target"] > 0 for cell in cells[:3])
    assert [cell["cache"].get("nginx", {}).get("HIT", 0) > 130 for cell in cells[:4]] == [
        False
    ] * 3 + [True]
    assert cells[3]["cpu_ms_per_request"]["cache"] > 0
    assert [claim["verdict"] for claim in run.json["claims"]] == ["holds"]
    # Once before each cell, and once at the end.
    assert (app / "resets").read_text().count("again") == 6
    assert _git(app, "worktree", "list").count("\n") == 0
    assert "secret-word" not in "".join(p.read_text(errors="replace") for p in _files(folder))


def test_data_are_put_back_after_a_comparison_that_failed(lab, stack, app):
    file = app / "shop.toml"
    file.write_text(file.read_text().replace('"server.py", "{port}"', '"none.py", "{port}"'))
    result = lab("compare", "--target", str(file), ".", "word=two")
    assert result.code == 1
    assert "none.py" in result.err
    # Once before the start, and once at the end.
    assert (app / "resets").read_text().count("again") == 2
    file.write_text(file.read_text().replace("echo again >> resets", "exit 1"))
    failed = lab("compare", "--target", str(file), ".", "word=two")
    assert "The data could not be put back" in failed.err


def test_single_load_starts_the_target_and_stops_it(lab, stack, app):
    hold = ("k6", "hold", "--rate", "20", "--duration", "7s", "--json")
    run = lab(*hold, "--target", str(app / "shop.toml"))
    assert run.code == 0, run.err
    assert run.json["failed"] == 0
    # It may have a database, and its file names none.
    (asked,) = run.json["unseen_services"]
    assert f"Name it in {app / 'shop.toml'}: postgres = " in asked
    assert not port_is_open("127.0.0.1", int(run.json["target"]["url"].rsplit(":")[-1]))


def test_restart_of_the_target_is_reported(lab, stack, app):
    file = app / "shop.toml"
    loop = f'["sh", "-c", "while :; do {sys.executable} server.py {{port}} {{word}} 60; done"]'
    text = file.read_text()
    command = text[text.index("command = ") : text.index("\nprepare")]
    file.write_text(text.replace(command, f"command = {loop}"))
    hold = ("k6", "hold", "--rate", "20", "--duration", "8s", "--json")
    run = lab(*hold, "--target", str(file))
    assert run.json["restarted"] == ["target"]
    assert run.json["failed"] > 0


def test_target_that_dies_under_load_is_one_message(lab, stack, app):
    file = app / "shop.toml"
    file.write_text(file.read_text().replace('"{word}"]', '"{word}", "60"]'))
    hold = ("k6", "hold", "--rate", "20", "--duration", "8s")
    run = lab(*hold, "--target", str(file))
    assert run.code == 1
    assert "ended with exit code 1. Its log, " in run.err
    assert "What was measured is in " in run.err
    assert "Traceback" not in run.err


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("server.py", "none.py", 1, "No such file"),
        ('prepare = ["touch"', 'prepare = ["false"', 1, "prepare"),
        ('"touch"', '"/no/such/program"', 1, "can't be run"),
        ("[reset]", 'folder = "none"\n[reset]', 2, "does not exist"),
        ("[reset]", '[start.env]\nSHOP = "${NOT_SET_HERE}"\n[reset]', 2, "NOT_SET_HERE"),
    ],
)
def test_target_that_does_not_start_is_one_message(lab, stack, app, old, new, code, message):
    file = app / "shop.toml"
    file.write_text(file.read_text().replace(old, new))
    run = lab("k6", "hold", "--rate", "5", "--duration", "5s", "--target", str(file))
    assert run.is_one_message(code)
    assert message in run.err


@pytest.mark.parametrize(
    ("variation", "message"),
    [
        ("options = { words = 1 }", "has no {words}"),
        ('git = "second"', "no git repository that has a commit second"),
        ('git = "-x"', "git"),
        ('image = "x"', "image"),
    ],
)
def test_unknown_variant_is_refused_before_anything_starts(lab, app, tmp_path, variation, message):
    file = tmp_path / "my-variants.toml"
    text = EXPERIMENT.format(target=app / "shop.toml")
    file.write_text(text.replace('options = { word = "two" }', variation))
    run = lab("run", str(file), "--dry-run")
    assert run.is_one_message(2)
    assert message in run.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[[axis]]",
            'settings = { LAB_DETAIL = "fast" }\n[[axis]]',
            "settings is for the reference app",
        ),
        (
            'title = "as the file says"',
            'title = "x"\nreset = "nothing"',
            "reset is for the reference app",
        ),
        ('profile = "hold"', 'profile = "hold", scenario = "detail"', "no scenario"),
        ('target = "{target}"\n', "", "is for a target"),
    ],
)
def test_keys_of_the_other_kind_are_refused(lab, app, tmp_path, old, new, message):
    file = tmp_path / "my-variants.toml"
    text = EXPERIMENT.format(target=app / "shop.toml").replace(f'"{app}/shop.toml"', '"{target}"')
    file.write_text(text.replace(old, new, 1).replace("{target}", str(app / "shop.toml")))
    run = lab("run", str(file), "--dry-run")
    assert run.is_one_message(2)
    assert message in run.err


def _commit(folder, text):
    _git(folder, "add", ".")
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    _git(folder, *author, "commit", "--quiet", "--message", text)


def _git(folder, *arguments):
    argv = ["git", "-C", str(folder), *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def _files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]
