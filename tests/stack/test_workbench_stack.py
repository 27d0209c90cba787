"""LAB_WORKBENCH on a running stack: tables, data and worker come with it, and go with it."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from lab.settings import load_settings
from lab.stack import database
from lab.stack.native.services import BACKEND, services


@pytest.fixture(scope="module")
def workbench(lab, stack):
    """Switched on while the stack runs; off again afterwards."""
    done = lab("set", "LAB_WORKBENCH=on", "LAB_VIEWS=async")
    assert done.code == 0, done.err
    yield httpx.Client(base_url=f"{stack.settings().backend_url}/workbench", timeout=20)
    lab("set", "LAB_WORKBENCH=off", "LAB_VIEWS=sync")


def _states(stack):
    return {service.name: service.state for service in stack.services()}


def test_it_comes_with_its_setting(stack, workbench):
    assert workbench.get("/io-read/").json()["count"] == stack.settings().LAB_DATA_POSTS
    assert workbench.get("/layer-hello/").json()["worker"] == stack.pids()["backend-worker"]


def test_the_worker_bears_its_mark(stack, workbench):
    """By which it is measured; of bin/serve itself nothing is left in its command line."""
    _check_mark(stack, "backend-worker")


def test_the_server_beside_bears_its_mark_and_is_left_alone_by_settings_of_nginx(lab, stack):
    assert lab("set", "LAB_SECOND_SERVER=uvicorn").code == 0
    try:
        _check_mark(stack, "backend-beside")
        before = stack.pids()["backend-beside"]
        assert lab("set", "LAB_NGINX_POST_RATE=190").code == 0
        assert stack.pids()["backend-beside"] == before
        assert lab("set", "LAB_DETAIL=fast").code == 0
        assert stack.pids()["backend-beside"] != before
    finally:
        lab("set", "LAB_SECOND_SERVER=off", "LAB_NGINX_POST_RATE=200", "LAB_DETAIL=naive")


def _check_mark(stack, name):
    (service,) = (s for s in services(stack.settings(), stack._state) if s.name == name)
    said = " ".join(psutil.Process(stack.pids()[name]).cmdline())
    assert f" {service.mark} " in f" {said} "


def test_the_worker_is_well_while_it_answers_and_while_it_is_off(stack, workbench):
    """Compose's check; the native engine asks by itself."""
    url = f"{stack.settings().backend_url}/async/workbench/layer-hello/"
    assert _is_well(url, "on")
    stack._supervision.stop_service("backend-worker")
    try:
        assert not _is_well(url, "on")
        assert _is_well(url, "off")
    finally:
        stack.up(stack.settings())


def _is_well(url, setting):
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    argv = [BACKEND / "bin/check", url, setting]
    return not subprocess.run(argv, env=env, stderr=subprocess.PIPE, check=False).returncode


def test_a_reset_takes_back_what_was_posted(stack, workbench):
    database.prepare_template(stack, stack.settings())
    assert workbench.post("/io-create/", data={"title": "t", "content": "c"}).status_code == 201
    with stack.emptied():
        database.restore(stack)
    assert workbench.get("/io-read/").json()["count"] == stack.settings().LAB_DATA_POSTS
    # What was on its way is gone with the caches; the worker listens still.
    assert workbench.get("/layer-hello/").status_code == 200


def test_another_template_is_made_for_an_experiment_without_it():
    on, off = (load_settings({"LAB_WORKBENCH": position}) for position in ("on", "off"))
    assert database._signature(on) != database._signature(off)


def test_it_goes_with_its_setting(lab, stack, workbench):
    assert lab("set", "LAB_WORKBENCH=off").code == 0
    assert workbench.get("/io-read/").status_code == 404
    assert _states(stack)["backend-worker"] == "missing"
