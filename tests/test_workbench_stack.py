"""LAB_WORKBENCH on a running stack: tables, data and worker come with it, and go with it."""

import httpx
import pytest

from lab.experiment import reset
from lab.settings import load_settings


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


def test_a_reset_takes_back_what_was_posted(stack, workbench):
    reset.prepare_template(stack, stack.settings())
    assert workbench.post("/io-create/", data={"title": "t", "content": "c"}).status_code == 201
    with stack.emptied():
        reset.restore(stack)
    assert workbench.get("/io-read/").json()["count"] == stack.settings().LAB_DATA_POSTS
    # What was on its way is gone with the caches; the worker listens still.
    assert workbench.get("/layer-hello/").status_code == 200


def test_another_template_is_made_for_an_experiment_without_it():
    on, off = (load_settings({"LAB_WORKBENCH": position}) for position in ("on", "off"))
    assert reset._signature(on) != reset._signature(off)


def test_it_goes_with_its_setting(lab, stack, workbench):
    assert lab("set", "LAB_WORKBENCH=off").code == 0
    assert workbench.get("/io-read/").status_code == 404
    assert _states(stack)["backend-worker"] == "missing"
