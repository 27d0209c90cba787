"""What a killed command leaves: `lab status` names it, `lab up` ends it, `lab down --data` removes
it. What a running command has stays.
"""

import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from load_lab.paths import State, compared_state, current_state
from load_lab.stack.locks import command_of, unused
from load_lab.stack.native.ended import end_left, find_left
from load_lab.stack.native.supervision import leftovers, started_in, wait_for

LAB = Path(sys.executable).parent / "lab"
NUMBER = 5
# Each starts something for itself, prints a line, and waits.
SEPARATE = """
import time
from load_lab.targets.reference.two_stacks import separate_stack
from load_lab.settings import load_settings
with separate_stack(5, load_settings()):
    print("ready", flush=True)
    time.sleep(600)
"""
BENCH = """
import time
from load_lab.bench.start import _lab, _second_stack
from load_lab.settings import load_settings
with _second_stack(load_settings()) as (_, env):
    _lab("up", env)
    print("ready", flush=True)
    time.sleep(600)
"""
# A target that ignores Ctrl-C, as a shell's background jobs do.
PROGRAM = """
import os, time
from load_lab.paths import current_state
from load_lab.stack.native.die_with_parent import argv_prefix
from load_lab.stack.native.started_processes import Process, processes
with processes(current_state()) as group:
    argv = [*argv_prefix(), "sh", "-c", "trap '' INT; sleep 600 & sleep 600"]
    group.start(Process("target-shop", argv, "0", current_state().base, os.environ))
    print("ready", flush=True)
    time.sleep(600)
"""


@contextmanager
def _command(code):
    process = subprocess.Popen(
        [sys.executable, "-c", code, "A", "B"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def remove_data():
    yield
    end_left(data=True)
    assert not any(each.data_bytes or each.processes for each in find_left())


def _pids(state):
    """Return the processes of a stack; not Postgres's, which begins and ends them by itself."""
    pids = set()
    for process in leftovers(state):
        with suppress(psutil.NoSuchProcess):
            pids |= {process.pid} if process.name() != "postgres" else set()
    return pids


def _left(lab, state):
    (found,) = [
        each for each in lab("status", "--json").json["left"] if each["what"] == str(state.base)
    ]
    return found


@pytest.mark.usefixtures("remove_data")
@pytest.mark.parametrize(
    ("code", "name"),
    [(SEPARATE, "compare/5"), pytest.param(BENCH, "bench-start", marks=pytest.mark.full)],
    ids=["compare", "bench"],
)
def test_stack_of_a_killed_command_is_named_ended_and_removed(lab, stack, code, name):
    state = State(current_state().base / name)
    with _command(code) as command:
        pids = _pids(state)
        assert pids
        running = _left(lab, state)
        assert running["is_running"]
        assert running["processes"] > len(pids)
        # Neither the start of the stack nor the end of what has ended touches it.
        assert lab("up").code == 0
        end_left(data=True)
        assert _pids(state) == pids
        assert "In use" in lab("status").out
    ended = _left(lab, state)
    assert not ended["is_running"]
    assert ended["processes"] > len(pids)
    assert f"`-c A B` (process {command.pid}" in ended["command"]
    assert ended["data_bytes"] > 30e6
    assert "lab down --data" in lab("status", COLUMNS="300").out
    result = lab("up")
    assert f" processes of `-c A B` (process {command.pid}" in result.err
    assert "MB of data; `lab down --data` removes it" in result.err
    assert leftovers(state) == []
    assert _left(lab, state)["processes"] == 0
    end_left(data=True)
    assert not any(folder.exists() for folder in state.folders)


@pytest.mark.full
@pytest.mark.usefixtures("remove_data")
def test_reused_process_number_does_not_keep_a_stack(lab, stack):
    state = compared_state(NUMBER)
    with _command(SEPARATE):
        pass
    lock = state.base / "command.lock"
    lock.write_text(f"`lab compare` (process {os.getpid()})")
    # Two that look at the same time are not its holder either.
    with unused(state) as first, unused(state) as second:
        assert first
        assert second
        assert not _left(lab, state)["is_running"]
    # A stack of an older version has no record.
    lock.unlink()
    assert "older version" in _left(lab, state)["command"]
    end_left()
    assert _pids(state) == set()


def test_program_of_a_killed_command_is_named_and_ended(lab, stack):
    state = current_state()
    with _command(PROGRAM) as command:
        wait_for(lambda: len(started_in(state)) == 3, seconds=10, what="the shell's jobs")
        pids = {process.pid for process in started_in(state)}
        (running,) = lab("status", "--json").json["left"]
        assert running["is_running"]
        assert lab("up").code == 0
        assert {process.pid for process in started_in(state)} == pids
    (ended,) = lab("status", "--json").json["left"]
    assert not ended["is_running"]
    assert f"process {command.pid}" in ended["command"]
    assert (ended["what"], ended["processes"]) == ("target-shop", 3)
    assert "3 processes of" in lab("up").err
    assert started_in(state) == []
    assert lab("status", "--json").json["left"] == []


@pytest.mark.full
@pytest.mark.usefixtures("remove_data")
def test_killed_comparison_leaves_nothing_after_up(lab, stack):
    argv = [str(LAB), "compare", "LAB_DETAIL=fast", "LAB_DETAIL=naive"]
    states = [compared_state(1), compared_state(2)]
    process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: all(len(_pids(s)) > 8 for s in states), seconds=120, what="both stacks")
        assert {_left(lab, state)["is_running"] for state in states} == {True}
    finally:
        process.kill()
        process.wait()
    assert {_left(lab, state)["is_running"] for state in states} == {False}
    assert "`lab compare LAB_DETAIL=fast`" in command_of(states[0])
    result = lab("up")
    assert result.err.count("Ended what a killed command had left") == 2
    assert not any(map(leftovers, states))
    assert lab("down", "--data").out.count("Removed: 0 processes of") == 2
    assert not any(state.base.exists() for state in states)
    assert lab("up").code == 0
