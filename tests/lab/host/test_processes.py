"""Memory and CPU time of real process trees."""

import subprocess
import sys
import time
from contextlib import contextmanager

import psutil
import pytest

from lab.host.processes import answering, tree_bytes, wait_until_idle
from lab.host.sampler import CpuUse, memory_peak
from lab.stack.native.supervision import wait_for

MEGABYTE = 1024**2
# A parent with a child that holds 64 MB; each says so when it is ready.
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


def test_a_tree_counts_with_its_children():
    with tree() as pid:
        assert 64 * MEGABYTE < tree_bytes([pid]) < 120 * MEGABYTE
        assert tree_bytes([pid, 2**22 + 1]) == pytest.approx(tree_bytes([pid]), rel=0.1)
    assert tree_bytes([pid]) is None


def test_an_old_stack_answers_instead_of_the_backend():
    pids = {"backend": 1, "backend-beside": 2, "backend-metrics": 3, "postgres": 4}
    # The worker of the channel layer runs beside every server of the experiments, idle.
    pids |= {"backend-worker": 8}
    assert answering(pids) == [1, 2]
    assert answering(pids | {"legacy-web": 5, "legacy-worker-1": 6, "legacy-redis": 7}) == [5, 6]


def test_the_peak_is_the_most_of_the_samples():
    uses = [CpuUse(0, 0, 0, {}, size) for size in (None, 7, 9, 8)]
    assert memory_peak(uses) == 9
    assert memory_peak(uses[:1]) is None


# Computes until a file is there, in a child; then waits.
COMPUTE = "import pathlib, sys\nwhile not pathlib.Path(sys.argv[1]).exists(): pass"
PARENT_OF_IT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", *sys.argv[1:]])
input()
"""


def test_a_tree_is_waited_for_until_it_computes_no_more(tmp_path):
    stop = tmp_path / "stop"
    argv = [sys.executable, "-c", PARENT_OF_IT, COMPUTE, str(stop)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as process:
        wait_for(psutil.Process(process.pid).children, seconds=10, what="The child")
        began = time.monotonic()
        wait_until_idle({"it": process.pid}, seconds=2)
        assert time.monotonic() - began > 2
        stop.touch()
        began = time.monotonic()
        wait_until_idle({"it": process.pid}, seconds=20)
        assert time.monotonic() - began < 10
        process.stdin.close()
