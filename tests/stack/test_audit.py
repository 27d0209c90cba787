"""`make audit` distinguishes an unreachable index from packages without known vulnerabilities."""

import os
import subprocess
import sys

import pytest

from load_lab.paths import ROOT
from native.audit import LOCK, REQUIREMENTS, of_npm, of_pip

# As pip-audit 2 and npm 9 print them, shortened.
PIP = """{"dependencies": [
  {"name": "jinja2", "version": "2.4.1", "vulns": [{"id": "PYSEC-2014-8"}]},
  {"name": "click", "version": "8.1.7", "vulns": []}], "fixes": []}"""
PIP_SKIPPED = """{"dependencies": [
  {"name": "jinja2", "skip_reason": "Dependency not found on PyPI and could not be audited"},
  {"name": "click", "version": "8.1.7", "vulns": []}], "fixes": []}"""
NPM = """{"auditReportVersion": 2, "vulnerabilities": {"braces": {"range": "<3.0.3", "via": [
  {"url": "https://github.com/advisories/GHSA-grv7-fg5c-xmjg"}, "micromatch"]}}}"""
NPM_UNREACHABLE = (
    '{"message": "request to http://127.0.0.1:1/-/npm/v1 failed", "error": {"summary": ""}}'
)


def test_vulnerable_packages_are_reported():
    assert of_pip("x", PIP, "").found == {"jinja2 2.4.1": ["PYSEC-2014-8"]}
    assert of_pip("x", PIP, "").state == of_npm("x", NPM, "").state == "vulnerable"
    (ids,) = of_npm("x", NPM, "").found.values()
    assert ids == ["https://github.com/advisories/GHSA-grv7-fg5c-xmjg", "micromatch"]


def test_packages_unknown_to_index_are_not_audited():
    """pip-audit itself reports for them: No known vulnerabilities found."""
    audit = of_pip("x", PIP_SKIPPED, "No known vulnerabilities found")
    assert audit.state == "not audited"
    assert audit.why == "its index knows nothing of 1 of 2 packages"
    known = of_pip(
        "x", PIP_SKIPPED.replace('"skip_reason": "', '"version": "1", "vulns": [], "x": "'), ""
    )
    assert known.state == "nothing found"


@pytest.mark.parametrize(
    ("read", "out", "err"),
    [
        (of_pip, "", "Traceback…\nrequests.exceptions.ConnectionError: refused"),
        (of_pip, "", ""),
        (of_npm, NPM_UNREACHABLE, ""),
        (of_npm, "", "npm error network"),
    ],
)
def test_unreachable_index_is_reported_as_not_audited(read, out, err):
    audit = read("x", out, err)
    assert audit.state == "not audited"
    assert "did not answer" in audit.why


def test_audit_without_network_reports_it_and_exits_with_zero():
    """Run the real programs without access to any index."""
    proxy = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "https_proxy"), "http://127.0.0.1:1")
    variables = {**proxy, "NO_PROXY": "", "no_proxy": "", "npm_config_fetch_retries": "0"}
    result = subprocess.run(
        [sys.executable, "-m", "native.audit"],
        cwd=ROOT,
        env={**os.environ, **variables, "npm_config_registry": "http://127.0.0.1:1/"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == [*REQUIREMENTS, LOCK]
    assert all(": not audited, since " in line for line in lines), result.stdout
