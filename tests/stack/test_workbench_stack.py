"""LAB_WORKBENCH adds tables, data and a worker to a running stack, and removes them."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from load_lab.paths import ROOT
from load_lab.settings import load_settings
from load_lab.stack import database

has_workbench = pytest.mark.settings("LAB_WORKBENCH=on", "LAB_VIEWS=async")


@pytest.fixture
def workbench(stack):
    return httpx.Client(base_url=f"{stack.settings().backend_url}/workbench", timeout=20)


def _states(stack):
    return {service.name: service.state for service in stack.services()}


@has_workbench
def test_setting_enables_the_workbench(stack, workbench):
    assert workbench.get("/io-read/").json()["count"] == stack.settings().LAB_DATA_POSTS
    assert workbench.get("/layer-hello/").json()["worker"] == stack.pids()["backend-worker"]


@pytest.mark.settings("LAB_SECOND_SERVER=uvicorn")
def test_second_server_survives_changes_of_nginx_settings(lab, stack):
    before = stack.pids()["backend-beside"]
    assert lab("set", "LAB_NGINX_POST_RATE=190").code == 0
    assert stack.pids()["backend-beside"] == before
    assert lab("set", "LAB_DETAIL=fast").code == 0
    assert stack.pids()["backend-beside"] != before


@has_workbench
def test_worker_is_healthy_while_it_answers_or_is_off(stack, workbench):
    """Run Compose's health check; the native engine has its own."""
    url = f"{stack.settings().backend_url}/async/workbench/layer-hello/"
    assert _is_healthy(url, "on")
    stack._supervision.stop_service("backend-worker")
    try:
        assert not _is_healthy(url, "on")
        assert _is_healthy(url, "off")
    finally:
        stack.up(stack.settings())


def _is_healthy(url, setting):
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    argv = [ROOT / "backend/bin/check", url, setting]
    return not subprocess.run(argv, env=env, stderr=subprocess.PIPE, check=False).returncode


@has_workbench
def test_restoring_the_database_removes_posted_data(stack, workbench):
    database.prepare_template(stack, stack.settings())
    assert workbench.post("/io-create/", data={"title": "t", "content": "c"}).status_code == 201
    with stack.empty_caches():
        database.restore(stack)
    assert workbench.get("/io-read/").json()["count"] == stack.settings().LAB_DATA_POSTS
    # Pending messages are deleted with the caches; the worker still listens.
    assert workbench.get("/layer-hello/").status_code == 200


def test_database_template_depends_on_the_setting():
    on, off = (load_settings({"LAB_WORKBENCH": value}) for value in ("on", "off"))
    assert database._signature(on) != database._signature(off)


@has_workbench
def test_setting_disables_the_workbench(lab, stack, workbench):
    assert lab("set", "LAB_WORKBENCH=off").code == 0
    assert workbench.get("/io-read/").status_code == 404
    assert _states(stack)["backend-worker"] == "missing"
