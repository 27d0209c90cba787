"""`lab overload` of a small app, as a user runs it; and what ends it and `lab soak` early."""

import pytest

from load_lab.paths import ROOT, current_state
from load_lab.stack.native.supervision import started_in
from tests.stack.bottleneck.started_apps import App, write_target
from tests.support.ports import free_port

# Two workers that wait for 80 ms: 25 requests/s.
WORKERS = App("sleep", ("gunicorn", "--workers", "2", "waiting:app"))


@pytest.mark.alone
@pytest.mark.full
def test_queue_of_an_app_grows_and_is_worked_off(lab, stack, tmp_path):
    path = write_target(WORKERS, tmp_path, free_port(), free_port())
    result = lab("overload", "--target", str(path), "--duration", "10s", "--json")
    assert result.code == 0, result.err + result.out
    document, (arm,) = result.json, result.json["arms"]
    capacity = document["limit"]["rate"]
    assert 20 < capacity < 32
    assert arm["rate"] == round(2 * capacity)
    # What is not answered in the 10 s waits.
    assert arm["waiting"] == pytest.approx(10 * (arm["rate"] - 24.5), rel=0.25)
    assert arm["most_waiting"] >= arm["waiting"]
    assert 6_000 < arm["slowest_ms"] < 18_000
    assert 10 < arm["seconds_to_normal"] <= 40
    assert arm["goodput_share"] < 0.6
    assert arm["dropped"] == 0
    assert arm["server_memory"]["at most"] >= arm["server_memory"]["before"] > 0
    assert arm["memory_bytes"] == {}
    assert (ROOT / document["files"]["picture"]).exists()
    assert not started_in(current_state())
    shown = lab("show", document["files"]["result"].rpartition("/")[2].removesuffix(".json"))
    assert f"app: the queue grew to {arm['most_waiting']:,.0f} requests; answers" in shown.out


@pytest.fixture
def write(tmp_path):
    def write_file(text):
        (tmp_path / "shop.mix.json").write_text("{}")
        (tmp_path / "shop.toml").write_text(text)
        return str(tmp_path / "shop.toml")

    return write_file


COMMANDS = pytest.mark.parametrize("command", ["overload", "soak"])


@COMMANDS
def test_target_that_is_down_is_one_message(lab, stack, write, command):
    path = write(f'url = "http://127.0.0.1:{free_port()}"\nready_seconds = 0.5\n')
    result = lab(command, "--target", path)
    assert result.is_one_message(1), result.err
    assert "Start the target, or change url" in result.err


@COMMANDS
def test_public_host_is_one_message(lab, write, command):
    result = lab(command, "--target", write('url = "http://8.8.8.8"\n'))
    assert result.is_one_message(2), result.err
    assert "--yes-load 8.8.8.8" in result.err


@COMMANDS
def test_missing_prometheus_is_one_message(lab, second_stack, write, command):
    path = write('url = "http://127.0.0.1:8000"\n')
    result = lab(command, "--target", path, **second_stack)
    assert result.is_one_message(1), result.err
    assert f"Prometheus is not running. Start it: lab up --target {path}" in result.err


@COMMANDS
def test_scenario_of_the_reference_app_is_one_message(lab, write, command):
    path = write('url = "http://127.0.0.1:8000"\n')
    result = lab(command, "--target", path, "--scenario", "list")
    assert result.is_one_message(2), result.err
