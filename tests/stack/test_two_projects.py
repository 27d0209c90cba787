"""A second project on the machine of a running stack."""

import os

import pytest

from load_lab.stack.locks import measurement_lock


@pytest.fixture
def other_project(tmp_path):
    """Return the environment of a project with the ports of the running stack."""
    return {"LAB_PROJECT": str(tmp_path), "LAB_STATE_DIR": ""}


def test_port_in_use_names_the_other_project(lab, stack, other_project):
    result = lab("up", **other_project)
    assert result.is_one_message(1), result.err
    assert f"The stack of {os.environ['LAB_STATE_DIR']}" in result.err
    assert f"already listens on port {os.environ['LAB_REDIS_PORT']} (LAB_REDIS_PORT)" in result.err
    assert lab("status", "--json", **other_project).json["services"] == []
    # Without the reference app, its ports are not needed.
    result = lab("up", LAB_REFERENCE_APP="off", **other_project)
    assert "LAB_REDIS_PORT" not in result.err
    # What to type has each setting whose ports are in use, once.
    _, _, words = " ".join(result.err.split()).partition("choose other ports: ")
    prometheus, exporters, *rest = words.split()
    assert prometheus == f"LAB_PROMETHEUS_PORT={int(os.environ['LAB_PROMETHEUS_PORT']) + 1000}"
    assert exporters == f"LAB_EXPORTERS_PORT={int(os.environ['LAB_EXPORTERS_PORT']) + 1000}"
    assert rest == ["lab", "up"]


def test_only_one_project_measures_at_a_time(lab, stack, tmp_path):
    with measurement_lock():
        result = lab("k6", "smoke", LAB_PROJECT=str(tmp_path))
    assert result.is_one_message(1)
    assert "measures on this machine" in result.err
