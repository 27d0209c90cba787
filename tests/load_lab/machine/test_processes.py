"""Memory and CPU time of real process trees."""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from load_lab.machine import processes
from load_lab.machine.cpu_use import CpuUse, memory_peak
from load_lab.machine.processes import server_pids, tree_bytes

MEGABYTE = 1024**2
# A parent with a child that holds 64 MB and prints `held` when it is ready.
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
child.wait()
"""
CHILD = "held = bytearray(b'x') * (64 * 1024**2); print('held', flush=True); input()"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


@contextmanager
def tree():
    argv = [sys.executable, "-c", PARENT, CHILD]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process.pid
        process.stdin.close()


def test_tree_memory_includes_children():
    with tree() as pid:
        assert 64 * MEGABYTE < tree_bytes([pid]) < 120 * MEGABYTE
        assert tree_bytes([pid, 2**22 + 1]) == pytest.approx(tree_bytes([pid]), rel=0.1)
    assert tree_bytes([pid]) is None


def test_old_stack_answers_instead_of_backend():
    pids = {"backend": 1, "backend-beside": 2, "backend-metrics": 3, "postgres": 4}
    # The worker of the channel layer runs next to every server of the experiments, idle.
    pids |= {"backend-worker": 8}
    assert server_pids(pids) == [1, 2]
    assert server_pids(pids | {"legacy-web": 5, "legacy-worker-1": 6, "legacy-redis": 7}) == [5, 6]


def test_memory_peak_is_largest_sample():
    uses = [CpuUse(0, 0, 0, {}, size) for size in (None, 7, 9, 8)]
    assert memory_peak(uses) == 9
    assert memory_peak(uses[:1]) is None


def test_wait_ends_when_trees_are_idle(monkeypatch):
    """The processes have then finished the work that the load left behind."""
    cores = [0.99, 0.5, 0.1, 0.9]
    monkeypatch.setattr(processes, "cores_used", lambda _roots: cores.pop(0))
    processes.wait_until_idle({})
    assert cores == [0.9]


def test_wait_ends_after_given_seconds(monkeypatch):
    monkeypatch.setattr(processes, "cores_used", lambda _roots: 1.0)
    processes.wait_until_idle({}, seconds=0.1)


def test_cpu_time_of_child_counts_for_its_tree():
    code = "import time\nends = time.process_time() + 1\nwhile time.process_time() < ends: pass"
    before = processes.cpu_seconds({"us": os.getpid()})["us"]
    subprocess.run([sys.executable, "-c", code], check=True)
    assert processes.cpu_seconds({"us": os.getpid()})["us"] - before >= 1
