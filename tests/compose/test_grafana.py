"""Grafana as compose starts it: read-only access without login, and every dashboard loads."""

import json
import os

import httpx
import pytest

from load_lab.paths import ROOT

DASHBOARDS = sorted((ROOT / "grafana/dashboards").glob("*.json"))


@pytest.fixture(scope="module")
def grafana(stack):
    if "grafana" in stack.missing:
        pytest.skip(f"without grafana: {stack.missing['grafana']}")
    address = f"http://127.0.0.1:{os.environ['LAB_GRAFANA_PORT']}"
    with httpx.Client(base_url=address, timeout=30) as client:
        yield client


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_dashboard_is_public(grafana, file):
    response = grafana.get(f"/api/dashboards/uid/{file.stem}")
    assert response.status_code == 200
    dashboard = json.loads(file.read_text())
    titles = [panel["title"] for panel in response.json()["dashboard"]["panels"]]
    assert titles == [panel["title"] for panel in dashboard["panels"]]


def test_anonymous_user_cannot_make_changes(grafana):
    assert grafana.get("/api/admin/settings").status_code in (401, 403)
    response = grafana.post("/api/dashboards/db", json={"dashboard": {"title": "x"}})
    assert response.status_code in (401, 403)


def test_default_password_is_rejected(grafana):
    assert grafana.get("/api/org", auth=("admin", "admin")).status_code == 401


def test_data_source_answers_through_grafana(grafana):
    data = {"query": "up"}
    response = grafana.post("/api/datasources/proxy/uid/prometheus/api/v1/query", data=data)
    assert response.status_code == 200
    assert response.json()["data"]["result"]


def test_grafana_accepts_all_provisioned_files(stack, grafana):
    """Grafana reports a rejected dashboard only in its log."""
    lines = stack.compose("logs", "--no-color", "grafana").splitlines()
    errors = [line for line in lines if "level=error" in line and "provision" in line.lower()]
    assert errors == []
