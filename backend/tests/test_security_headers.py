"""Security headers for browsers, and the reasons of silenced checks."""

import re

import pytest
from config.settings import BASE_DIR
from django.conf import settings
from django.test import Client

ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
}


@pytest.mark.parametrize(
    ("path", "status"),
    [("/api/hotel/", 200), ("/api/none/", 404), ("/api/schema/", 200), ("/healthz", 200)],
)
def test_api_responses_forbid_scripts_and_framing(db, path, status):
    answer = Client().get(path)
    assert answer.status_code == status
    assert {name: answer.headers[name] for name in ALWAYS} == ALWAYS
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"


@pytest.mark.parametrize("variant", ["sync", "async"])
def test_workbench_responses_forbid_scripts_and_framing(db, variant):
    prefix = "" if variant == "sync" else "/async"
    answer = Client().get(f"{prefix}/workbench/hello/")
    assert {name: answer.headers[name] for name in ALWAYS} == ALWAYS
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_docs_page_allows_same_origin_files_and_no_inline_script(db):
    answer = Client().get("/api/docs/")
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    page = answer.content.decode()
    assert re.findall(r"<script(?! src=)", page) == []
    (script,) = re.findall(r'<script src="(/api/docs/[^"]*)"', page)
    assert "SwaggerUIBundle(" in Client().get(script).content.decode()


def test_admin_site_and_login_are_absent(db):
    assert not [name for name in settings.INSTALLED_APPS if name.startswith("django.contrib.a")]
    assert "django.contrib.sessions" not in settings.INSTALLED_APPS
    assert Client().get("/admin/").status_code == 404


def test_every_silenced_check_has_a_reason():
    text = (BASE_DIR / "config/settings.py").read_text()
    (block,) = re.findall(r"SILENCED_SYSTEM_CHECKS = \[\n(.*?)\]", text, re.DOTALL)
    reasons = dict(re.findall(r'"(\S+)",  # (.{15,})', block))
    assert list(reasons) == settings.SILENCED_SYSTEM_CHECKS
