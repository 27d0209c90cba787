"""`lab run` and `lab report` on the running stack: measured, interrupted, resumed, refused."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from lab.errors import LabError, UsageError
from lab.experiments import command
from lab.paths import RESULTS, ROOT
from lab.settings import changed, load_settings
from lab.stack import verify
from lab.stack.native.supervision import wait_for
from lab.stack.status import active_settings

# Its loads take the machine to its limit: beside other tests Prometheus would miss seconds of them.
pytestmark = pytest.mark.alone

LAB = Path(sys.executable).parent / "lab"
CELLS = ("list/naive/none", "list/naive/nginx-protected-warm")
FLAGS = ("cache-ladder", "--quick", *(part for name in CELLS for part in ("--only", name)))


@pytest.fixture(scope="module")
def measured(lab, stack):
    """A quick run of two cells, from a stack with a setting of its own."""
    assert lab("set", "LAB_WORKERS=1").code == 0
    said = lab("run", *FLAGS, "--json")
    assert said.code == 0, said.err
    yield said
    assert lab("set", "LAB_WORKERS=2").code == 0
    shutil.rmtree(_folder(said.json))


def _folder(document):
    return (ROOT / document["files"]["html"]).parent


def _cell(document, name):
    return next(cell for cell in document["cells"] if cell["name"] == name)


def test_every_cell_has_its_figures_and_every_claim_its_verdict(measured):
    document = measured.json
    assert [cell["name"] for cell in document["cells"]] == list(CELLS)
    for cell in document["cells"]:
        assert cell["repeat"] == 1
        assert cell["requests"] > 1000
        assert cell["goodput"] > 0
        assert cell["failed_ratio"] == 0
        assert {"p95_ms", "dropped_iterations", "limited_by"} <= cell.keys()
    assert {claim["verdict"] for claim in document["claims"]} == {"not measured"}
    assert {"id", "text", "measured", "published"} <= document["claims"][0].keys()


def test_a_cell_runs_with_its_own_settings_and_says_what_the_layer_did(measured):
    none, protected = (_cell(measured.json, name) for name in CELLS)
    assert none["settings"]["LAB_NGINX_CACHE"] == "off"
    assert protected["settings"]["LAB_NGINX_CACHE"] == "protected"
    assert none["builds"]["hotel_list"] > none["requests"] / 2
    # The page was made when it was warmed; setup's own reading does not count.
    assert protected["builds"].get("hotel_list", 0) == 0
    assert protected["cache"]["nginx"]["HIT"] > 0.9 * protected["requests"]


def test_what_was_stored_says_on_what_and_with_which_programs(measured):
    folder = _folder(measured.json)
    header = json.loads((folder / "experiment.json").read_text())
    assert header["state"] == "finished"
    assert header["quick"]
    assert {"nginx", "postgres", "redis", "k6", "prometheus", "django"} <= header["versions"].keys()
    assert header["host"]["target_cpus"]
    cell = json.loads(next(folder.glob("cells/*/cell.json")).read_text())
    assert cell["services_cpu"]["backend"] > 0
    assert cell["cpu_speed"] > 0
    assert cell["missing_in_prometheus"] == 0
    assert len(cell["windows"]) >= 5
    assert (folder / "report.html").stat().st_size > 10_000


def test_the_stack_is_left_as_it_was_with_fresh_data(measured, stack):
    settings = stack.settings()
    assert (settings.LAB_WORKERS, settings.LAB_NGINX_CACHE) == (1, "off")
    assert len(httpx.get(f"{settings.target_url}/api/hotel/").json()) == 4


def test_report_reads_what_is_stored_and_measures_nothing(lab, measured):
    name = _folder(measured.json).name
    again = lab("report", name, "--json")
    assert again.code == 0, again.err
    assert again.json == measured.json
    readable = lab("report", name, COLUMNS="120")
    assert readable.out.index("not measured") < readable.out.index("list/naive/none")


def test_ctrl_c_leaves_a_result_that_can_be_resumed_and_a_clean_stack(lab, stack, measured):
    before = set(RESULTS.glob("cache-ladder-*"))
    argv = [str(LAB), "run", *FLAGS, "--json"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: _loads_first_cell(before), seconds=90, what="The first cell's load")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=90)
    assert process.returncode == 1
    assert "Go on with: lab run cache-ladder --resume" in said
    assert "Traceback" not in said
    assert active_settings(stack)["LAB_NGINX_CACHE"] == "off"
    assert httpx.get(f"{stack.settings().target_url}/api/hotel/").status_code == 200
    _first_cell_was_measured(measured, before)
    resumed = lab("run", "cache-ladder", "--resume", "--json")
    assert resumed.code == 0, resumed.err
    assert [cell["state"] for cell in resumed.json["cells"]] == ["measured", "measured"]
    assert "2/2" in resumed.err
    assert "1/2" not in resumed.err
    shutil.rmtree(_folder(resumed.json))


def _loads_first_cell(before):
    new = set(RESULTS.glob("cache-ladder-*")) - before
    return [log for folder in new for log in folder.glob("cells/001-*/k6.log")]


def _first_cell_was_measured(measured, before):
    """By the run of another test, with the same settings: no need to measure it again."""
    (interrupted,) = set(RESULTS.glob("cache-ladder-*")) - before
    (cell,) = _folder(measured.json).glob("cells/001-*")
    shutil.copytree(cell, interrupted / "cells" / cell.name, dirs_exist_ok=True)


def test_dry_run_tells_cells_and_time_and_runs_nothing(lab, stack):
    before = _results()
    said = lab("run", "cache-ladder", "--dry-run", "--json")
    assert len(said.json["cells"]) > 25
    assert said.json["expected_seconds"] > 1800
    assert "Nothing was run" in lab("run", "cache-ladder", "--dry-run").out
    assert _results() == before


def _results():
    """Names, not their times: other tests' runs, in the other process, are named by a profile."""
    others = "smoke|breakpoint|hold|closed|closed-ramp|outage"
    found = {path.name for path in RESULTS.iterdir()}
    return {name for name in found if not re.match(rf"({others})-", name)}


@pytest.mark.parametrize(
    ("claimed", "said"),
    [
        ("LAB_REDIS_CACHE=page", "these caches: none; the settings require: redis"),
        ("LAB_LOCAL_CACHE=lru", "these caches: none; the settings require: local"),
        ("LAB_NGINX_CACHE=basic", "X-Cache-Status [None, None] instead of ['MISS', 'HIT']"),
        ("LAB_DETAIL=fast", "backend runs with other settings: {'LAB_DETAIL': 'naive'}"),
        ("LAB_NGINX_POST_RATE=7", "Nginx runs with other settings: {'LAB_NGINX_POST_RATE': '200'}"),
    ],
)
def test_a_layer_that_is_not_really_on_is_found(stack, monkeypatch, claimed, said):
    claimed_settings = changed(stack.settings(), [claimed])
    if "CACHE" in claimed:
        monkeypatch.setattr(verify, "_check_settings", lambda _: None)
    with pytest.raises(LabError) as found:
        verify.verify(verify.Target(claimed_settings, stack.token()))
    assert said in str(found.value)


def test_a_run_that_was_begun_with_other_programs_is_not_gone_on_with(measured):
    head = json.loads((_folder(measured.json) / "experiment.json").read_text())
    command._check_same_machine("r", head, head)
    other = head | {"versions": head["versions"] | {"nginx": "1.0"}}
    with pytest.raises(UsageError, match="versions was"):
        command._check_same_machine("r", head, other)
    assert head["data"]["LAB_DATA_HOTELS"] == "4"
    other = head | {"data": head["data"] | {"LAB_DATA_HOTELS": "5"}}
    with pytest.raises(UsageError, match="data was"):
        command._check_same_machine("r", head, other)


def test_what_stops_a_run_before_its_data_are_prepared_leaves_the_data_alone(
    lab, stack, monkeypatch
):
    stack.sql("hotel", "CREATE TABLE mine ()")
    monkeypatch.setattr("lab.host.preflight._FREE_BYTES", 2**62)
    plan = command.plan_of("cache-ladder", only=["list/naive/none"], repeats=None, quick=True)
    with pytest.raises(LabError, match="Too little disk"):
        command.start(stack, plan)
    # A restored database would not have it.
    stack.sql("hotel", "DROP TABLE mine")


def test_a_run_on_a_broken_stack_is_one_message_and_leaves_it_running(lab, stack):
    before = set(RESULTS.glob("cache-ladder-*"))
    stack._supervision.stop_service("redis")
    try:
        said = lab("run", "cache-ladder", "--quick", "--only", "list/naive/redis-page")
    finally:
        stack._supervision.start_service("redis")
    assert said.is_one_message(1)
    assert "Redis can't be emptied" in said.err
    states = {service.name: service.state for service in stack.services()}
    assert states["nginx"] == states["backend"] == "running"
    for folder in set(RESULTS.glob("cache-ladder-*")) - before:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("run", "cache-leader"), 2, "There is no experiment cache-leader. Known: cache-ladder"),
        (("run", "cache-ladder", "--only", "memcached"), 2, "fits no cell"),
        (("run", "cache-ladder", "--resume", "--quick"), 2, "takes no other option"),
        (("report", "no-such-run"), 2, "There is no run no-such-run"),
        (("set", "--preset", "worst"), 2, "'worst' is not one of 'article', 'best'"),
        (("set",), 2, "Nothing to set"),
    ],
)
def test_wrong_input_is_one_message(lab, stack, argv, code, said):
    answer = lab(*argv)
    assert answer.is_one_message(code), answer.err
    assert said in answer.err


def test_a_backend_with_debug_on_is_refused(monkeypatch):
    monkeypatch.setattr(verify, "ask_backend", lambda *_: {"debug": True, "settings": {}})
    with pytest.raises(LabError, match="DEBUG on"):
        verify.verify(verify.Target(load_settings(), "token"))
