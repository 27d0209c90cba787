"""A plain Django project as a target: without OpenAPI, with a token of five minutes."""

import subprocess
import sys
from pathlib import Path

import pytest

from load_lab.paths import ROOT
from load_lab.stack.native.supervision import port_is_open, wait_for
from tests.support.ports import free_port

PROJECT = ROOT / "tests/support/jwt_django"
PYTHON = sys.executable


@pytest.fixture(scope="module")
def url():
    """Start the project under gunicorn; return its address."""
    port = free_port()
    server = [PYTHON, "-m", "gunicorn", "--workers", "2", "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen([*server, "manage:application"], cwd=PROJECT)
    try:
        wait_for(lambda: port_is_open("127.0.0.1", port), seconds=30, what="gunicorn")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def target(tmp_path, url):
    """Write a target file by hand; return its path."""
    path = tmp_path / "notes.toml"
    manage = f'"{PYTHON}", "{PROJECT / "manage.py"}"'
    path.write_text(f'url = "{url}"\nmanage = [{manage}]\n[auth]\ncommand = [{manage}, "token"]\n')
    return str(path)


def test_routes_are_loaded_with_a_fresh_token(lab, stack, target):
    made = lab("mix", "make", target, "--yes", "--json")
    assert made.code == 0, made.err
    addresses = {each["name"]: each["addresses"] for each in made.json["operations"]}
    assert addresses == {"GET /": 1, "GET /notes/": 1, "GET /notes/{slug}/": 2}
    (ping,) = made.json["left_out"]
    assert "ping" in ping["reason"]
    run = lab("k6", "hold", "--rate", "20", "--duration", "8s", "--target", target, "--json")
    assert run.code == 0, run.err
    assert run.json["failed"] == 0
    # k6 rounds the last arrival.
    assert run.json["requests"] in (160, 161)
    # Gunicorn's master is found by the port, with its workers.
    assert run.json["cpu_ms_per_request"]["target"] > 0
    # It has no database.
    assert run.json["unseen_services"] == []
    assert "canary-signature" not in run.out + run.err


def test_value_that_no_route_needs_names_the_source_of_queries(lab, stack, target):
    Path(target).write_text(Path(target).read_text() + '[values]\nq = ["shoes"]\n')
    planned = lab("mix", "make", target, "--dry-run")
    assert planned.code == 0, planned.err
    assert f"[values] has q, which no operation needs. For queries: lab mix make {target}" in (
        planned.out + planned.err
    )


def test_load_that_outlives_its_token_is_refused(lab, stack, target):
    assert lab("mix", "make", target, "--yes").code == 0
    argv = ("k6", "hold", "--rate", "20", "--duration", "40s", "--target", target)
    refused = lab(*argv, TOKEN_SECONDS="30")
    assert refused.is_one_message(1)
    assert "token expires in" in refused.err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ('["/no/such/program"]', "can't be run"),
        ('["false"]', "exit code 1"),
        ('["true"]', "0 words"),
    ],
)
def test_failed_token_command_is_one_message(lab, tmp_path, url, command, message):
    path = tmp_path / "notes.toml"
    path.write_text(f'url = "{url}"\nopenapi = "/"\n[auth]\ncommand = {command}\n')
    result = lab("mix", "make", str(path))
    assert result.is_one_message(1)
    assert message in result.err
    assert [each.name for each in tmp_path.iterdir()] == ["notes.toml"]
