"""CPU scheduling: k6 runs before the programs that measure the services."""

import platform
import subprocess
import sys

import pytest

from load_lab.load.k6 import k6_env
from load_lab.load.load import Load
from load_lab.machine.cpus import Cpus
from load_lab.paths import project
from load_lab.settings import load_settings
from load_lab.stack.native import die_with_parent, scheduling
from load_lab.targets.reference.app import ReferenceApp

# Prints the CPU slice of its own process, read with sched_getattr(2).
_READ_BACK = """
import ctypes, struct
layout = struct.Struct("=IIQiIQQQ")
buffer = ctypes.create_string_buffer(layout.size)
status = ctypes.CDLL(None).syscall({number}, 0, buffer, layout.size, 0)
print(status, layout.unpack(buffer.raw)[5])
"""
_GETATTR = {"x86_64": 315, "aarch64": 275}


def _slice(*before):
    code = _READ_BACK.format(number=_GETATTR[platform.machine()])
    argv = [*before, sys.executable, "-c", code]
    process = subprocess.run(argv, capture_output=True, text=True, check=True)
    failed, nanoseconds = map(int, process.stdout.split())
    return None if failed else nanoseconds


@pytest.mark.skipif(
    platform.machine() not in _GETATTR,
    reason="system call number known for x86_64 and aarch64 only",
)
def test_program_keeps_the_requested_cpu_slice():
    if _slice() in (None, 0):
        pytest.skip("This kernel has one slice for all programs: Linux 6.12 or later is required.")
    assert _slice() > scheduling.SLICE_NANOSECONDS
    assert _slice(*scheduling.ARGV_PREFIX) == scheduling.SLICE_NANOSECONDS


def test_k6_starts_with_the_requested_cpu_slice(stack):
    argv = stack.k6(load_settings(), {}).argv
    tethered = len(die_with_parent.argv_prefix())
    assert tuple(argv[tethered:][: len(scheduling.ARGV_PREFIX)]) == scheduling.ARGV_PREFIX
    version = subprocess.run([*argv, "version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("k6 v")


def test_unknown_system_call_is_no_error(monkeypatch):
    monkeypatch.setattr(scheduling, "_SETATTR", {})
    assert not scheduling.request_short_slices()


@pytest.mark.parametrize(
    ("cpus", "setting", "threads"),
    [("0", None, "2"), ("0-3", None, "4"), ("0", "1", "1")],
    ids=["one CPU", "four", "GOMAXPROCS set"],
)
def test_k6_has_a_second_thread_for_its_garbage_collector(
    stack, monkeypatch, cpus, setting, threads
):
    monkeypatch.setattr("load_lab.load.k6.choose_cpus", lambda _: Cpus("0", cpus))
    monkeypatch.delenv("GOMAXPROCS", raising=False)
    if setting:
        monkeypatch.setenv("GOMAXPROCS", setting)
    env = k6_env(stack, ReferenceApp(stack), Load("smoke"), project().results / "x")
    assert env["GOMAXPROCS"] == threads
