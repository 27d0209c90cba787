"""`lab target`, `lab mix` and loads of a target of the user's own, as a user runs them."""

import json
import math
import secrets
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from load_lab.errors import LabError, UsageError
from load_lab.paths import ROOT, project
from load_lab.stack.http import USER_AGENT
from load_lab.targets.adding import add_target
from load_lab.targets.file import read_target
from tests.support.small_api import DOCUMENT, TOKEN, SmallApi, serve_api

HEADER = ("--header", "Authorization: ${SMALL_TOKEN}")
SET = {"SMALL_TOKEN": TOKEN}
# Other tests fill the generator's CPUs, which would stop a ramp before its break.
WHOLE = ("--no-early-stop",)


@dataclass
class DescribedApi(SmallApi):
    """The small API, which also serves its OpenAPI document and a home page.

    The path `failing` answers 500 after this many requests to it. From the request `slow_from` on,
    every answer takes half a second.
    """

    failing: str = ""
    good_requests: int = 0
    slow_from: float = math.inf

    def answer(self, path, query):
        if len(self.paths) >= self.slow_from:
            time.sleep(0.5)
        if path == self.failing and self.paths.count(f"GET {path}") > self.good_requests:
            return 500, {}
        pages = {"/": {}, "/schema/": DOCUMENT}
        return (200, pages[path]) if path in pages else super().answer(path, query)


@pytest.fixture(scope="module")
def api():
    with serve_api(DescribedApi(needs_token=True)) as served:
        yield served


@pytest.fixture
def name():
    """Return the name of a new target; its files are removed afterwards."""
    chosen = f"test-{secrets.token_hex(4)}"
    yield chosen
    for path in project().targets.glob(f"{chosen}*"):
        path.unlink()


@pytest.fixture
def target(lab, api, name):
    """Add the small API as a target, with its mix."""
    added = lab("target", "add", name, api.url, "--openapi", "/schema/", *HEADER, SMALL_TOKEN=TOKEN)
    assert added.code == 0, added.err
    assert TOKEN not in (project().targets / f"{name}.toml").read_text()
    made = lab("mix", "make", name, "--json", SMALL_TOKEN=TOKEN)
    assert made.code == 0, made.err
    assert len(made.json["operations"]) == 14
    assert {each["status"] for each in made.json["left_out"]} == {None, 301, 403, 404, 500}
    # Of HTML alone.
    assert '"page"' not in (project().targets / f"{name}.mix.json").read_text()
    return name


def test_load_of_own_target_is_judged_and_its_token_is_nowhere(lab, stack, api, target):
    canary = TOKEN.split()[1]
    run = lab("k6", "smoke", "--target", target, "--json", SMALL_TOKEN=TOKEN)
    assert run.code == 0, run.err
    document = run.json
    assert document["target"] == {"name": target, "url": api.url, "observed": True}
    assert document["recorded"]["k6"] == document["recorded"]["prometheus"] > 100
    assert len(document["by_operation"]) == 14
    assert all(each["p95_ms"] > 0 for each in document["by_operation"])
    assert document["cpu_ms_per_request"]["target"] > 0
    # A site may end the session of another program: from `target add` to the load, it is one.
    assert api.agents == {USER_AGENT}
    texts = [
        run.out,
        run.err,
        *_texts(project().results / document["testid"]),
        *_texts(project().targets),
    ]
    found = subprocess.run(
        ["grep", "-rlaF", canary, str(ROOT / ".lab"), "--include=*.log", "--include=0*"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert [text for text in texts if canary in text] == []
    assert found.stdout == ""


def test_ramp_of_own_target_has_a_verdict(lab, stack, api, target, monkeypatch):
    # Few requests: more of them fill k6's CPU beside other tests, and its samples come too late.
    monkeypatch.setattr(api, "slow_from", len(api.paths) + 200)
    ramp = ("--rate", "100", "--duration", "20s", "--p95", "250ms", "--json", *WHOLE)
    run = lab("k6", "breakpoint", "--target", target, *ramp, SMALL_TOKEN=TOKEN)
    assert run.code == 0, run.err
    document = run.json
    assert document["outcome"] == "broke", document["verdict"]
    assert (ROOT / document["files"]["picture"]).exists()
    assert document["by_operation"][0]["exceeded_after"] is not None


@pytest.mark.full
def test_operation_that_starts_to_fail_is_named(lab, stack, api, target, monkeypatch):
    path = "/api/guests/me/"
    monkeypatch.setattr(api, "failing", path)
    monkeypatch.setattr(api, "good_requests", api.paths.count(f"GET {path}") + 30)
    ramp = ("--rate", "300", "--duration", "20s", "--json", *WHOLE)
    run = lab("k6", "breakpoint", "--target", target, *ramp, SMALL_TOKEN=TOKEN)
    assert run.code == 0, run.err
    first, *others = run.json["by_operation"]
    assert run.json["outcome"] == "broke"
    assert first["name"] == f"GET {path}"
    assert first["failed"] == run.json["failed"] > 30
    assert {each["failed"] for each in others} == {0}


def test_operation_with_few_requests_that_fails_is_named(lab, stack, api, target, monkeypatch):
    """Two requests in 12 s, too few for windows."""
    path = "/api/hotels/"
    monkeypatch.setattr(api, "failing", path)
    # One more is sent in setup().
    monkeypatch.setattr(api, "good_requests", api.paths.count(f"GET {path}") + 1)
    # The others may be slow beside other tests.
    load = ("--rate", "3", "--duration", "12s", "--p95", "20s", "--json")
    run = lab("k6", "hold", "--target", target, *load, SMALL_TOKEN=TOKEN)
    assert run.code == 1
    first, *others = run.json["by_operation"]
    assert (first["name"], first["failed"]) == (f"GET {path}", first["requests"])
    assert 0 <= first["exceeded_after"] <= 12
    assert {each["exceeded_after"] for each in others} == {None}


def test_operation_that_fails_before_the_load_is_named(lab, stack, target):
    path = project().targets / f"{target}.mix.json"
    mix = json.loads(path.read_text())
    mix["operations"][2]["requests"] = [{"path": "/api/hotels/9/"}]
    path.write_text(json.dumps(mix))
    run = lab("k6", "smoke", "--target", target, SMALL_TOKEN=TOKEN)
    assert run.is_one_message(1)
    assert "GET /api/hotels/{id}/" in run.err


@pytest.mark.parametrize(
    ("argv", "environ", "code", "message"),
    [
        (("x y", "{url}"), {}, 2, "can't name a target"),
        (("{name}", "ftp://x"), {}, 2, "values are invalid (docs/own-app.md):\n  url: ftp://x is"),
        (("{name}", "http://127.0.0.1:1", "--ready", "x"), {}, 2, "ready"),
        (("{name}", "{url}", "--header", "Authorization: Token abc"), {}, 2, "into a variable"),
        (("{name}", "{url}", "--header", "Authorization"), {}, 2, "is written 'Name: value'"),
        (("{name}", "{url}", *HEADER), {}, 2, "SMALL_TOKEN, which is not set"),
        (
            ("{name}", "{url}", *HEADER),
            {"SMALL_TOKEN": "wrong"},
            1,
            "401. It needs a header",
        ),
        (("{name}", "{url}", *HEADER, "--ready", "/no/"), SET, 1, "Nothing was written"),
    ],
)
def test_target_is_added_only_if_it_answers(lab, api, name, argv, environ, code, message):
    argv = [word.format(name=name, url=api.url) if word[0] == "{" else word for word in argv]
    result = lab("target", "add", *argv, **environ)
    assert result.is_one_message(code)
    assert message in result.err
    assert "abc" not in result.err
    assert list(project().targets.glob(f"{name}*")) == []


def test_target_that_does_not_answer_is_not_written(name):
    values = {"url": "http://127.0.0.1:1", "ready_seconds": 0.2}
    with pytest.raises(LabError, match="or name another URL"):
        add_target(name, values, [], replace=False)
    assert list(project().targets.glob(f"{name}*")) == []
    earlier = project().targets / f"{name}.toml"
    earlier.write_text('url = "http://127.0.0.1:2"')
    with pytest.raises(LabError, match="or name another URL"):
        add_target(name, values, [], replace=True)
    assert earlier.read_text() == 'url = "http://127.0.0.1:2"'


def test_files_that_are_named_in_the_users_folder_are_found_later(api, tmp_path, monkeypatch):
    (tmp_path / "targets").mkdir()
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv/python").symlink_to(sys.executable)
    (tmp_path / "manage.py").write_text("")
    (tmp_path / "schema.yml").write_text("")
    monkeypatch.setenv("LAB_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SMALL_TOKEN", TOKEN)
    named = {"manage": ["venv/python", "manage.py", "--traceback"], "openapi": "schema.yml"}
    path = add_target("shop", {"url": api.url, **named}, [HEADER[1]], replace=False)
    file = read_target(str(path))
    assert file.manage == ("../venv/python", "../manage.py", "--traceback")
    assert file.openapi == "../schema.yml"

    with pytest.raises(UsageError, match="no program venv/bin/python here"):
        add_target("x", {"url": api.url, "manage": ["venv/bin/python", "m"]}, [], replace=False)
    # A container has its own files.
    named = {"manage": ["docker", "compose", "exec", "web", "python", "manage.py"]}
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    path = add_target("z", {"url": api.url, **named}, [HEADER[1]], replace=False)
    assert read_target(str(path)).manage == tuple(named["manage"])
    # What the PATH has, and an address of the document, stay as they are.
    named = {"manage": ["sh", "manage.sh"], "openapi": "/api/schema/"}
    path = add_target("y", {"url": api.url, **named}, [HEADER[1]], replace=False)
    file = read_target(str(path))
    assert (file.manage, file.openapi) == (("sh", "manage.sh"), "/api/schema/")


def test_target_that_exists_is_replaced_only_on_request(lab, api, target):
    argv = ("target", "add", target, api.url, *HEADER)
    refused = lab(*argv, SMALL_TOKEN=TOKEN)
    assert refused.is_one_message(2)
    assert "--replace" in refused.err
    assert lab(*argv, "--replace", SMALL_TOKEN=TOKEN).code == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("url = 1", "url"),
        ('url = "http://127.0.0.1:1"\nlink = "/"', "link"),
        ("url = ", "is not TOML"),
        ('url = "http://127.0.0.1:1"\n[auth]\ncommand = []', "auth.command"),
    ],
)
@pytest.mark.parametrize("argv", [("mix", "make"), ("k6", "smoke", "--target")])
def test_invalid_target_file_is_one_message(lab, tmp_path, argv, content, message):
    path = tmp_path / "shop.toml"
    path.write_text(content)
    result = lab(*argv, str(path))
    assert result.is_one_message(2)
    assert message in result.err


def test_public_host_needs_the_users_word(lab, tmp_path):
    path = tmp_path / "shop.toml"
    path.write_text('url = "http://192.0.2.1.nip.invalid"')
    result = lab("k6", "smoke", "--target", str(path))
    assert result.is_one_message(2)
    assert "--yes-load 192.0.2.1.nip.invalid" in result.err


def test_host_that_can_not_be_found_is_one_message(lab, stack, tmp_path):
    path = tmp_path / "shop.toml"
    path.write_text('url = "http://shop.invalid"\nready_seconds = 0.5')
    result = lab("k6", "smoke", "--target", str(path), "--yes-load", "shop.invalid")
    assert result.is_one_message(1)
    assert "gave no 200 or redirect within 0.5 s" in result.err


@pytest.mark.full
def test_stack_for_own_target_starts_only_what_measures(lab, api, target, second_stack):
    early = lab("k6", "smoke", "--target", target, SMALL_TOKEN=TOKEN, **second_stack)
    assert early.is_one_message(1)
    assert f"Start it: lab up --target {target}" in early.err
    up = lab("up", "--target", target, "--json", SMALL_TOKEN=TOKEN, **second_stack)
    assert up.code == 0, up.err
    running = {each["name"] for each in up.json["services"] if each["state"] == "running"}
    assert running - {"grafana"} == {"prometheus", "node-exporter", "process-exporter"}
    refused = lab("k6", "smoke", **second_stack)
    assert refused.is_one_message(1)
    assert "without the reference app" in refused.err
    assert lab("down", **second_stack).code == 0


def _texts(folder):
    return [path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()]
