"""Grafana if it is installed, and the reported reason if it is not."""

import base64

import httpx
import pytest

from load_lab.stack.native.services import grafana
from tests.support.dashboards import dashboards

needs_grafana = pytest.mark.skipif(
    grafana.find_installation() is None, reason=f"Grafana: {grafana.absence_reason()}"
)


@pytest.fixture
def url(stack):
    return f"http://127.0.0.1:{stack.settings().LAB_GRAFANA_PORT}"


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Return a folder laid out like Grafana's archive, with no other Grafana on the PATH."""
    program = tmp_path / "home/bin/grafana"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    links = tmp_path / "bin"
    links.mkdir()
    (links / "grafana").symlink_to(program)
    monkeypatch.setenv("PATH", str(links))
    monkeypatch.delenv("GF_PATHS_HOME", raising=False)
    return tmp_path / "home"


def _make_home(folder):
    (folder / "conf").mkdir(parents=True)
    (folder / "conf/defaults.ini").touch()
    return folder


def test_home_is_derived_from_the_real_program(archive):
    _make_home(archive)
    installation = grafana.find_installation()
    assert installation.home == archive
    assert installation.command[1:] == ["server"]


def test_home_can_be_set_in_the_environment(archive, tmp_path, monkeypatch):
    other = _make_home(tmp_path / "other")
    monkeypatch.setenv("GF_PATHS_HOME", str(other))
    assert grafana.find_installation().home == other


def test_program_without_home_counts_as_absent(archive, monkeypatch):
    monkeypatch.setattr(grafana, "_PACKAGE_HOME", archive / "nowhere")
    assert grafana.find_installation() is None
    assert "GF_PATHS_HOME" in grafana.absence_reason()


def test_missing_program_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    if grafana.find_installation() is not None:
        pytest.skip("Grafana is among the system's own programs")
    assert grafana.absence_reason().startswith("no grafana on the PATH")


@needs_grafana
def test_grafana_loads_every_dashboard_without_error(url, stack):
    for dashboard in dashboards():
        response = httpx.get(f"{url}/api/dashboards/uid/{dashboard['uid']}")
        assert response.status_code == 200, response.text
        assert response.json()["meta"]["folderTitle"] == "Load Lab"
        assert response.json()["meta"]["canSave"] is False
    log = (stack._state.logs / "grafana.log").read_text()
    assert not [line for line in log.splitlines() if "level=error" in line]


@needs_grafana
def test_data_source_reaches_prometheus(url):
    query = {"refId": "A", "datasource": {"uid": "prometheus"}, "expr": "vector(1)"}
    body = {"queries": [query | {"instant": True}], "from": "now-1m", "to": "now"}
    response = httpx.post(f"{url}/api/ds/query", json=body)
    assert response.json()["results"]["A"]["status"] == 200, response.text


@needs_grafana
def test_viewing_is_open_and_administration_requires_generated_password(url, stack):
    assert httpx.get(f"{url}/api/search").status_code == 200
    assert httpx.get(f"{url}/api/admin/settings").status_code in (401, 403)
    for password, status in (("admin", 401), (_password(stack), 200)):
        credentials = base64.b64encode(f"admin:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}"}
        assert httpx.get(f"{url}/api/admin/settings", headers=headers).status_code == status


def _password(stack):
    return (stack._state.secrets / "grafana_password").read_text()
