"""`lab explain --prove` of a user's app, whose options the target's file names."""

import shutil

import pytest

from load_lab.diagnosis import causes
from load_lab.explain.explanation import StoredLoad
from load_lab.explain.proof import prove_cause
from load_lab.load.load import Load, new_testid
from load_lab.metrics.windows import Bounds
from load_lab.paths import ROOT, current_state
from load_lab.results.bottleneck import Candidate, Diagnosis
from load_lab.results.result import TargetName
from load_lab.run.single_run import run_once
from load_lab.stack.native.supervision import started_in
from load_lab.targets.app_process import is_open
from load_lab.targets.declared import find_target
from tests.stack.bottleneck.started_apps import App

# These tests load the machine, one cause after the other.
pytestmark = [pytest.mark.alone, pytest.mark.machine(part="causes")]

_SYNC = App(
    "sleep",
    ("gunicorn", "--workers", "{workers}", "waiting:app"),
    options={"workers": 2},
    prove={causes.SLOTS.name: "workers"},
)
_THREADS = App(
    "mutex",
    ("gunicorn", "--workers", "1", "--threads", "{threads}", "waiting:app"),
    options={"threads": 16},
    prove={causes.SLOTS.name: "threads", causes.PROCESS_LOCK.name: "threads"},
)
_COMPUTING = App(
    "regular_expression",
    ("gunicorn", "--workers", "{workers}", "waiting:app"),
    options={"workers": 4},
)


def _run(stack, app, folder):
    """Return a ramp up to the app's break."""
    load = Load("breakpoint", duration="30s", rate=60, testid=new_testid("cause"))
    with app.start(stack, folder) as target:
        single_run = run_once(stack, target, load, Bounds(), quiet=True)
    shutil.rmtree(ROOT / single_run.files["folder"])
    return single_run


def _prove(stack, result, settings, folder):
    target = find_target(str(folder / "app.toml"))
    before = target.path.read_text()
    name = TargetName(name=str(target.path), url=target.url)
    result = result.model_copy(update={"target": name})
    document = prove_cause(stack, StoredLoad("a test", result, settings, folder))
    print(document["headline"])
    # Options and processes are as before.
    assert target.path.read_text() == before
    assert started_in(current_state()) == []
    assert not is_open(target)
    return document


def test_worker_slots_of_an_app_are_proven(stack, tmp_path):
    single_run = _run(stack, _SYNC, tmp_path)
    result = single_run.result
    assert result.bottleneck.cause == causes.SLOTS.name, result.bottleneck
    document = _prove(stack, result, single_run.settings, tmp_path)
    assert document["proven"], document
    assert document["changes"][0]["what"] == "workers: 2 → 4"


def test_full_cpus_of_an_app_are_proven(stack, tmp_path):
    single_run = _run(stack, _COMPUTING, tmp_path)
    found = _named(causes.BACKEND_CPU)
    result = single_run.result.model_copy(update={"bottleneck": found})
    document = _prove(stack, result, single_run.settings, tmp_path)
    assert document["proven"], document
    # An option of this name says how many processes there are.
    assert document["changes"][1]["what"] == "workers: 4 → 8"


@pytest.mark.parametrize("cause", [causes.SLOTS, causes.PROCESS_LOCK])
def test_more_threads_behind_a_mutex_prove_nothing(stack, tmp_path, cause):
    single_run = _run(stack, _THREADS, tmp_path)
    result = single_run.result.model_copy(update={"bottleneck": _named(cause)})
    document = _prove(stack, result, single_run.settings, tmp_path)
    assert not document["proven"], document
    assert not document["gone"], document


def _named(cause):
    return Diagnosis(cause=cause.name, candidates=[Candidate(name=cause.name, share=0.9)])
