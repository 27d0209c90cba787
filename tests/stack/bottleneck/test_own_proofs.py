"""`lab explain --prove` of a user's app, whose options the target's file names."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from load_lab.diagnosis import causes
from load_lab.diagnosis.causes import Cause
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


@dataclass(frozen=True)
class Case:
    """An app, the right names of its cause, the option that [prove] has for them, and whether its
    change proves it.
    """

    wait: str
    command: tuple[str, ...]
    right: tuple[Cause, ...]
    options: Mapping[str, int] = field(default_factory=dict)
    is_proven: bool = True

    @property
    def app(self) -> App:
        prove = {cause.name: name for cause in self.right for name in self.options}
        return App(self.wait, self.command, options=self.options, prove=prove)


_PROCESSES = ("gunicorn", "--workers", "{workers}", "waiting:app")
_THREADS = ("gunicorn", "--workers", "1", "--threads", "{threads}", "waiting:app")
_PERMITS = ("gunicorn", "--workers", "1", "--threads", "16", "--env", "PERMITS={permits}")
_IN_THE_APP = (causes.PROCESS_LOCK, causes.SERIAL)
_FILE = (causes.FILE_LOCK, causes.SERIAL)
CASES = {
    "worker slots": Case("sleep", _PROCESSES, (causes.SLOTS,), {"workers": 2}),
    "a blocked event loop": Case(
        "blocking",
        ("uvicorn", "--no-access-log", "--workers", "{workers}", "looping:app"),
        (causes.EVENT_LOOP,),
        {"workers": 1},
    ),
    "a semaphore of three": Case(
        "semaphore", (*_PERMITS, "waiting:app"), _IN_THE_APP, {"permits": 3}
    ),
    "a mutex of threads": Case("mutex", _THREADS, _IN_THE_APP, {"threads": 16}, is_proven=False),
    "a file lock of processes": Case(
        "file_lock", _PROCESSES, _FILE, {"workers": 4}, is_proven=False
    ),
    "SQLite's write lock": Case("sqlite", _THREADS, _FILE, {"threads": 16}, is_proven=False),
}


def _run(stack, app, folder, rate=60):
    """Return a ramp up to the app's break."""
    load = Load("breakpoint", duration="30s", rate=rate, testid=new_testid("cause"))
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


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_only_what_helps_is_proven(stack, tmp_path, case):
    single_run = _run(stack, case.app, tmp_path)
    result = single_run.result
    assert result.bottleneck.cause in {cause.name for cause in case.right}, result.bottleneck
    document = _prove(stack, result, single_run.settings, tmp_path)
    assert document["proven"] == case.is_proven, document
    assert not document["gone"], document
    for name, value in case.options.items():
        assert document["changes"][0]["what"] == f"{name}: {value} → {2 * value}"


@pytest.mark.parametrize("wait", ["regular_expression", "garbage"])
def test_full_cpus_are_proven_by_a_busy_loop(stack, tmp_path, wait):
    app = App(wait, _PROCESSES, options={"workers": 4})
    # CPUs may be three times as fast as these.
    single_run = _run(stack, app, tmp_path, rate=180)
    assert single_run.result.bottleneck.cause == causes.BACKEND_CPU.name
    document = _prove(stack, single_run.result, single_run.settings, tmp_path)
    assert document["proven"], document
    # An option of this name says how many processes there are: the control.
    assert document["changes"][1]["what"] == "workers: 4 → 8"


def test_wrong_name_is_not_proven(stack, tmp_path):
    app = App("mutex", _THREADS, options={"threads": 16}, prove={causes.SLOTS.name: "threads"})
    single_run = _run(stack, app, tmp_path)
    named = Diagnosis(
        cause=causes.SLOTS.name, candidates=[Candidate(name=causes.SLOTS.name, share=0.9)]
    )
    result = single_run.result.model_copy(update={"bottleneck": named})
    document = _prove(stack, result, single_run.settings, tmp_path)
    assert not document["proven"], document
    assert not document["gone"], document
