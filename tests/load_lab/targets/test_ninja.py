"""A django-ninja project as a target: OpenAPI 3.1, a login, writes; the lab starts it."""

import sys

import pytest

from load_lab.paths import ROOT
from tests.support.ports import free_port

PROJECT = ROOT / "tests/support/ninja_app"
PYTHON = sys.executable


@pytest.fixture
def target(tmp_path):
    """Write a target file by hand; return its path."""
    path, port = tmp_path / "articles.toml", free_port()
    url = f"http://127.0.0.1:{port}"
    # Its articles are in the memory of one process.
    server = [PYTHON, "-m", "gunicorn", "--threads", "8", "--bind", f"127.0.0.1:{port}"]
    path.write_text(f"""
url = "{url}"
ready = "/api/health"
openapi = "/api/openapi.json"
writes = true
[auth]
command = ["{PYTHON}", "{PROJECT}/manage.py", "{url}"]
[start]
command = {[*server, "manage:application"]}
folder = "{PROJECT}"
""")
    return str(path)


def test_api_with_login_and_writes_is_loaded(lab, stack, target):
    made = lab("mix", "make", target, "--json")
    assert made.code == 0, made.err
    names = {each["name"] for each in made.json["operations"]}
    reads = ("health", "report", "me", "articles", "articles/{slug}", "articles/{slug}/comments")
    writes = ("POST /api/articles", "PUT /api/articles/{slug}", "DELETE /api/articles/{slug}")
    assert names >= {*(f"GET /api/{path}" for path in reads), *writes}
    run = lab("k6", "hold", "--rate", "40", "--duration", "10s", "--target", target, "--json")
    assert run.code == 0, run.err
    assert run.json["failed"] == 0
    assert run.json["recorded"]["k6"] == run.json["recorded"]["prometheus"] >= 400
    assert run.json["cpu_ms_per_request"]["target"] > 0


def test_load_that_outlives_its_token_is_refused(lab, stack, target):
    assert lab("mix", "make", target).code == 0
    argv = ("k6", "hold", "--rate", "20", "--duration", "40s", "--target", target)
    refused = lab(*argv, TOKEN_SECONDS="30")
    assert refused.is_one_message(1)
    assert "expires in" in refused.err
