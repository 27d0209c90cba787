"""Grafana as compose starts it: everyone may look, nobody may change, and every dashboard loads."""

import json
import os

import httpx
import pytest

from lab.paths import ROOT

DASHBOARDS = sorted((ROOT / "grafana/dashboards").glob("*.json"))


@pytest.fixture(scope="module")
def grafana(stack):
    if "grafana" in stack.left_out:
        pytest.skip(f"without grafana: {stack.left_out['grafana']}")
    address = f"http://127.0.0.1:{os.environ['LAB_GRAFANA_PORT']}"
    with httpx.Client(base_url=address, timeout=30) as client:
        yield client


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_the_dashboard_is_there_for_anyone(grafana, file):
    found = grafana.get(f"/api/dashboards/uid/{file.stem}")
    assert found.status_code == 200
    made = json.loads(file.read_text())
    titles = [panel["title"] for panel in found.json()["dashboard"]["panels"]]
    assert titles == [panel["title"] for panel in made["panels"]]


def test_anyone_may_look_and_not_touch(grafana):
    assert grafana.get("/api/admin/settings").status_code in (401, 403)
    changed = grafana.post("/api/dashboards/db", json={"dashboard": {"title": "x"}})
    assert changed.status_code in (401, 403)


def test_no_password_is_a_default_one(grafana):
    assert grafana.get("/api/org", auth=("admin", "admin")).status_code == 401


def test_the_data_source_answers_through_grafana(grafana):
    asked = {"query": "up"}
    answer = grafana.post("/api/datasources/proxy/uid/prometheus/api/v1/query", data=asked)
    assert answer.status_code == 200
    assert answer.json()["data"]["result"]


def test_grafana_refuses_none_of_its_files(stack, grafana):
    """A dashboard that it rejects shows in its log alone."""
    said = stack.compose("logs", "--no-color", "grafana").splitlines()
    wrong = [line for line in said if "level=error" in line and "provision" in line.lower()]
    assert wrong == []
