"""CPU time and memory by service, of real processes, and what the exporter itself costs."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from load_lab.machine.processes import cpu_seconds, wait_until_idle
from load_lab.stack.native.process_exporter import ProcessCollector
from load_lab.stack.native.services.start_order import services

MEGABYTE = 1024**2
# Limits of an idle stack, in cores, by the side that a service runs on.
IDLE_CORES = {"target": 0.05, "load": 0.12}
_IDLE_SECONDS = 15
# A parent that shares 64 MB with two children; each line on stdin makes a child use the CPU.
SERVICE = """
import mmap, os, sys, time
shared = mmap.mmap(-1, 64 * 1024**2)
for _ in range(64):
    shared.write(b"x" * 1024**2)
children = []
for _ in range(2):
    if not (pid := os.fork()):
        shared[::4096]
        time.sleep(600)
    children.append(pid)
print(flush=True)
for line in sys.stdin:
    if not (pid := os.fork()):
        ends = time.process_time() + float(line)
        while time.process_time() < ends: pass
        os._exit(0)
    os.waitpid(pid, 0)
    print(flush=True)
for pid in children:
    os.kill(pid, 9)
"""


class Supervised:
    """Stands for supervisor: this process has started the services."""

    def __init__(self):
        self.processes = {}

    def pids(self):
        return {name: process.pid for name, process in self.processes.items()}

    @contextmanager
    def run(self, name):
        argv = [sys.executable, "-c", SERVICE]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            self.processes[name] = process
            yield process
            del self.processes[name]
            process.stdin.close()


@pytest.fixture
def supervised():
    return Supervised()


@pytest.fixture
def collector(supervised):
    return ProcessCollector(supervised, os.getpid())


def _values(collector, name):
    (metric,) = (metric for metric in collector.collect() if metric.name == name)
    return {sample.labels["group"]: sample.value for sample in metric.samples}


def _use_cpu(process, seconds):
    process.stdin.write(f"{seconds}\n".encode())
    process.stdin.flush()
    process.stdout.readline()


def test_exporter_starts_without_the_lab_and_its_packages():
    """They would take 0.3 s of CPU time at each start, and 35 MB."""
    code = "import sys, load_lab.stack.native.process_exporter; print(*sys.modules)"
    argv = [sys.executable, "-c", code]
    modules = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert not {"pydantic", "psycopg", "httpx", "redis", "rich", "yaml"} & set(modules)


def test_cpu_time_of_an_ended_child_is_not_lost(supervised, collector):
    with supervised.run("backend") as process:
        before = _values(collector, "lab_process_cpu_seconds")["backend"]
        _use_cpu(process, 0.3)
        after = _values(collector, "lab_process_cpu_seconds")["backend"]
    assert 0.25 < after - before < 0.6


def test_restarted_service_never_decreases_its_counter(supervised, collector):
    totals = []
    for _ in range(2):
        with supervised.run("backend") as process:
            _use_cpu(process, 0.2)
            totals.append(_values(collector, "lab_process_cpu_seconds")["backend"])
    assert totals[1] > totals[0] + 0.15


def test_shared_memory_counts_once(supervised, collector):
    with supervised.run("postgres"):
        size = _values(collector, "lab_process_memory_bytes")["postgres"]
    assert 64 * MEGABYTE < size < 110 * MEGABYTE


def test_exporters_are_one_group_and_other_processes_are_not_counted(supervised, collector):
    with supervised.run("mtail"), supervised.run("nginx-exporter"), supervised.run("unknown"):
        del supervised.processes["unknown"]
        groups = set(_values(collector, "lab_process_memory_bytes"))
        # A k6 of another test counts as load: whoever started it, it uses this machine's CPU.
        assert groups - {"load"} == {"exporters"}
        supervised.processes["unknown"] = None


def test_every_running_service_is_measured(stack):
    pids = stack.pids()
    collector = ProcessCollector(stack._supervision, stack._supervision._call("getPID"))
    groups = set(_values(collector, "lab_process_cpu_seconds"))
    exporters = {name for name in pids if name.endswith("-exporter") or name == "mtail"}
    assert groups - {"load"} == set(pids) - exporters | {"exporters"}
    # Postgres belongs to another user, and has children.
    tree = cpu_seconds({"postgres": pids["postgres"]})["postgres"]
    assert _values(collector, "lab_process_cpu_seconds")["postgres"] == pytest.approx(tree, abs=1)


def test_idle_stack_uses_little_cpu(stack):
    pids = stack.pids()
    wait_until_idle(pids)
    started, before = time.monotonic(), cpu_seconds(pids)
    time.sleep(_IDLE_SECONDS)
    after, elapsed = cpu_seconds(pids), time.monotonic() - started
    cores = {name: round((after[name] - before[name]) / elapsed, 4) for name in pids}
    sides = {service.name: service.side for service in services(stack.settings(), stack._state)}
    for side, limit in IDLE_CORES.items():
        used = sum(value for name, value in cores.items() if sides[name] == side)
        assert used <= limit, f"{side}: {used:.3f} cores, limit {limit}. By service: {cores}"
    assert cores["process-exporter"] <= 0.02, cores
