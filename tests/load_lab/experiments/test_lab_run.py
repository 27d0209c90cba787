"""`lab run` and `lab report` on the running stack: measure, interrupt, resume, reject."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from load_lab.errors import LabError, UsageError
from load_lab.experiments import resume, session
from load_lab.experiments.plan import plan_of
from load_lab.paths import ROOT, project
from load_lab.settings import load_settings, update_settings
from load_lab.stack.native.supervision import wait_for
from load_lab.stack.status import active_settings
from load_lab.targets.reference import verify

# The loads saturate the machine: in parallel with other tests, Prometheus would miss seconds.
pytestmark = pytest.mark.alone

LAB = Path(sys.executable).parent / "lab"
CELLS = ("list/naive/none", "list/naive/nginx-protected-warm")
FLAGS = ("cache-ladder", "--quick", *(part for name in CELLS for part in ("--only", name)))


@pytest.fixture(scope="module")
def interrupted_run(lab, stack):
    """Run two cells with --quick on a stack with a non-default setting, and press Ctrl-C during the
    second; yield the exit code, the messages, and the settings of the stack afterwards.
    """
    assert lab("set", "LAB_WORKERS=1").code == 0
    before = set(project().results.glob("cache-ladder-*"))
    argv = [str(LAB), "run", *FLAGS, "--json"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: _loads_second_cell(before), seconds=180, what="The second cell's load")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=90)
    yield process.returncode, errors, active_settings(stack)
    for folder in set(project().results.glob("cache-ladder-*")) - before:
        shutil.rmtree(folder)


def _loads_second_cell(before):
    new = set(project().results.glob("cache-ladder-*")) - before
    return [log for folder in new for log in folder.glob("cells/002-*/k6.log")]


@pytest.fixture(scope="module")
def resumed_run(lab, stack, interrupted_run):
    """Resume the interrupted run; return the output, the settings and the hotels afterwards."""
    result = lab("run", "cache-ladder", "--resume", "--json")
    assert result.code == 0, result.err
    settings = stack.settings()
    return result, settings, httpx.get(f"{settings.target_url}/api/hotel/").json()


@pytest.fixture(scope="module")
def finished_run(resumed_run):
    return resumed_run[0]


def _folder(document):
    return (ROOT / document["files"]["html"]).parent


def _cell(document, name):
    return next(cell for cell in document["cells"] if cell["name"] == name)


def test_every_cell_has_metrics_and_every_claim_a_verdict(finished_run):
    document = finished_run.json
    assert [cell["name"] for cell in document["cells"]] == list(CELLS)
    for cell in document["cells"]:
        assert cell["repeat"] == 1
        assert cell["requests"] > 1000
        assert cell["goodput"] > 0
        assert cell["failed_ratio"] == 0
        assert {"p95_ms", "dropped_iterations", "limited_by"} <= cell.keys()
    assert {claim["verdict"] for claim in document["claims"]} == {"not measured"}
    assert {"id", "text", "measured", "published"} <= document["claims"][0].keys()


def test_cell_uses_its_settings_and_reports_cache_results(finished_run):
    none, protected = (_cell(finished_run.json, name) for name in CELLS)
    assert none["settings"]["LAB_NGINX_CACHE"] == "off"
    assert protected["settings"]["LAB_NGINX_CACHE"] == "protected"
    assert none["builds"]["hotel_list"] > none["requests"] / 2
    # The warm-up built the page; the requests of setup() do not count.
    assert protected["builds"].get("hotel_list", 0) == 0
    assert protected["cache"]["nginx"]["HIT"] > 0.9 * protected["requests"]


def test_stored_run_contains_host_and_program_versions(finished_run):
    folder = _folder(finished_run.json)
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


def test_run_restores_settings_and_data(resumed_run):
    _, settings, hotels = resumed_run
    assert (settings.LAB_WORKERS, settings.LAB_NGINX_CACHE) == (1, "off")
    assert len(hotels) == 4


def test_report_reads_stored_run_without_measuring(lab, finished_run):
    name = _folder(finished_run.json).name
    report = lab("report", name, "--json")
    assert report.code == 0, report.err
    assert report.json == finished_run.json
    text = lab("report", name, COLUMNS="120")
    assert text.out.index("not measured") < text.out.index("list/naive/none")


def test_ctrl_c_leaves_a_clean_stack(interrupted_run):
    code, errors, settings = interrupted_run
    assert code == 1
    assert "Go on with: lab run cache-ladder --resume" in errors
    assert "Traceback" not in errors
    assert (settings["LAB_NGINX_CACHE"], settings["LAB_WORKERS"]) == ("off", "1")


def test_resumed_run_measures_only_the_missing_cell(finished_run):
    assert [cell["state"] for cell in finished_run.json["cells"]] == ["measured", "measured"]
    assert "2/2" in finished_run.err
    assert "1/2" not in finished_run.err


def test_dry_run_shows_cells_and_time_without_running(lab, stack):
    before = _results()
    result = lab("run", "cache-ladder", "--dry-run", "--json")
    assert len(result.json["cells"]) > 25
    assert result.json["expected_seconds"] > 1800
    assert "Nothing was run" in lab("run", "cache-ladder", "--dry-run").out
    assert _results() == before


def _results():
    """Return the names of results, without single runs of tests in the other process."""
    others = "smoke|breakpoint|hold|closed|closed-ramp|outage"
    names = {path.name for path in project().results.iterdir()}
    return {name for name in names if not re.match(rf"({others})-", name)}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("LAB_REDIS_CACHE=page", "these caches: none; the settings require: redis"),
        ("LAB_LOCAL_CACHE=lru", "these caches: none; the settings require: local"),
        ("LAB_NGINX_CACHE=basic", "X-Cache-Status [None, None] instead of ['MISS', 'HIT']"),
        ("LAB_DETAIL=fast", "backend runs with other settings: {'LAB_DETAIL': 'naive'}"),
        ("LAB_NGINX_POST_RATE=7", "Nginx runs with other settings: {'LAB_NGINX_POST_RATE': '200'}"),
    ],
)
def test_inactive_layer_is_detected(stack, monkeypatch, setting, message):
    settings = update_settings(stack.settings(), [setting])
    if "CACHE" in setting:
        monkeypatch.setattr(verify, "_check_settings", lambda _: None)
    with pytest.raises(LabError) as error:
        verify.verify(verify.Target(settings, stack.token()))
    assert message in str(error.value)


def test_run_started_with_other_versions_is_not_resumed(finished_run):
    header = json.loads((_folder(finished_run.json) / "experiment.json").read_text())
    resume.check_same_machine("r", header, header)
    other = header | {"versions": header["versions"] | {"nginx": "1.0"}}
    with pytest.raises(UsageError, match="versions was"):
        resume.check_same_machine("r", header, other)
    assert header["data"]["LAB_DATA_HOTELS"] == "4"
    other = header | {"data": header["data"] | {"LAB_DATA_HOTELS": "5"}}
    with pytest.raises(UsageError, match="data was"):
        resume.check_same_machine("r", header, other)


def test_run_stopped_before_data_preparation_leaves_data_unchanged(lab, stack, monkeypatch):
    stack.sql("hotel", "CREATE TABLE mine ()")
    monkeypatch.setattr("load_lab.machine.preflight._FREE_BYTES", 2**62)
    plan = plan_of("cache-ladder", only=["list/naive/none"], repeats=None, quick=True)
    with pytest.raises(LabError, match="Too little disk"):
        session.start(stack, plan)
    # A restored database would not contain this table.
    stack.sql("hotel", "DROP TABLE mine")


def test_run_on_broken_stack_is_one_message_and_stack_continues(lab, stack):
    before = set(project().results.glob("cache-ladder-*"))
    stack._supervision.stop_service("redis")
    try:
        result = lab("run", "cache-ladder", "--quick", "--only", "list/naive/redis-page")
    finally:
        stack._supervision.start_service("redis")
    assert result.is_one_message(1)
    assert "Redis can't be emptied" in result.err
    states = {service.name: service.state for service in stack.services()}
    assert states["nginx"] == states["backend"] == "running"
    for folder in set(project().results.glob("cache-ladder-*")) - before:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (("run", "cache-leader"), 2, "There is no experiment cache-leader. Known: cache-ladder"),
        (("run", "cache-ladder", "--only", "memcached"), 2, "fits no cell"),
        (("run", "cache-ladder", "--resume", "--quick"), 2, "takes no other option"),
        (("report", "no-such-run"), 2, "There is no run no-such-run"),
        (("set", "--preset", "worst"), 2, "'worst' is not one of 'article', 'best'"),
        (("set",), 2, "Nothing to set"),
    ],
)
def test_wrong_input_is_one_message(lab, stack, argv, code, message):
    result = lab(*argv)
    assert result.is_one_message(code), result.err
    assert message in result.err


def test_backend_with_debug_is_rejected(monkeypatch):
    monkeypatch.setattr(verify, "query_backend", lambda *_: {"debug": True, "settings": {}})
    with pytest.raises(LabError, match="DEBUG on"):
        verify.verify(verify.Target(load_settings(), "token"))
