"""Processes of an old stack's arm: failures are reported, and all children are stopped."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from load_lab.errors import LabError
from load_lab.experiments.legacy import environment, native, stacks
from load_lab.paths import ROOT, State
from load_lab.settings import load_settings
from load_lab.stack.native.started_processes import Process, processes
from load_lab.stack.native.supervision import shared_memory_prefix, wait_for


@pytest.fixture
def state(tmp_path):
    (tmp_path / "logs").mkdir()
    return State(tmp_path)


def _shell(text):
    cpu = str(min(os.sched_getaffinity(0)))
    return Process("legacy-web", ["sh", "-c", text], cpu, ROOT, {"PATH": os.environ["PATH"]})


def test_ended_process_is_reported_with_its_log(state):
    with processes(state) as children:
        children.start(_shell("echo no such module; exit 3"))
        children.by_name["legacy-web"].wait()
        with pytest.raises(
            LabError, match=r"legacy-web ended with exit code 3[\s\S]*no such module"
        ):
            children.check()


def test_orphaned_child_ignoring_sigterm_is_killed(state):
    with processes(state) as children:
        children.start(_shell("(trap '' TERM; echo $$; exec sleep 600) & echo up; exit 0"))
        children.by_name["legacy-web"].wait()
        group = children.pids["legacy-web"]
        assert _members(group)
    wait_for(lambda: not _members(group), seconds=5, what="the child's end")


def _members(group):
    return [p for p in psutil.pids() if _group_of(p) == group and _is_alive(p)]


def _group_of(pid):
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_shared_memory_is_removed_after_processes_end(state, monkeypatch):
    (state.base / "run").mkdir(exist_ok=True)
    memory, ready = (
        Path("/dev/shm") / f"{shared_memory_prefix(state)}-late",
        state.base / "ready",
    )
    web = [
        "sh",
        "-c",
        f"trap 'touch {memory}; exit' TERM; touch {ready}; while :; do sleep 0.1; done",
    ]
    monkeypatch.setattr(environment, "make", lambda _: Path("/nowhere"))
    runner = native.NativeRunner(load_settings(), state)
    with runner.running(stacks.stack("channels-2016"), stacks.Arm(title="t", server="s", web=web)):
        wait_for(ready.exists, seconds=5, what="its start")
    assert not memory.exists()


def test_leftover_process_is_killed_before_next_arm(state):
    argv = [sys.executable, "-c", "import time; time.sleep(600)"]
    env = {**os.environ, "LAB_STACK": str(state.base), "LAB_STARTED": "legacy-web"}
    leftover = subprocess.Popen(argv, env=env)
    other = subprocess.Popen(argv, env=env | {"LAB_STACK": "/another"})
    try:
        wait_for(
            lambda: _has_environment(leftover) and _has_environment(other),
            seconds=5,
            what="their start",
        )
        with processes(state):
            assert leftover.wait(5) == -signal.SIGKILL
            assert other.poll() is None
    finally:
        for process in (leftover, other):
            process.kill()
            process.wait()


def _has_environment(process):
    return "LAB_STARTED" in psutil.Process(process.pid).environ()
