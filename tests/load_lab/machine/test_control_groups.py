"""What control groups did to services, from files like the kernel's."""

import os
import time

import pytest

from load_lab.machine import control_groups
from load_lab.machine.control_groups import ControlGroups, GroupEvents
from load_lab.machine.cpu_use import QuotaMeter


@pytest.fixture
def cgroups(monkeypatch, tmp_path):
    """Return a function that makes the groups of a process: its lines, and files of groups."""
    monkeypatch.setattr(control_groups, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(control_groups, "_CGROUPS", tmp_path / "cgroup")

    def make(pid, lines, files):
        process = tmp_path / "proc" / str(pid)
        process.mkdir(parents=True)
        (process / "cgroup").write_text(lines)
        for name, text in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return make


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        (
            "0::/app\n",
            {"app/cpu.stat": "throttled_usec 2500000\n", "app/memory.events": "oom_kill 3\n"},
        ),
        (
            "5:memory:/app\n4:cpu,cpuacct:/app\n0::/app\n",
            {
                "memory/app/memory.oom_control": "under_oom 0\noom_kill 3\n",
                "cpu,cpuacct/app/cpu.stat": "throttled_time 2500000000\n",
                "unified/app/cpu.stat": "usage_usec 1\n",
            },
        ),
    ],
    ids=["version 2", "version 1, with a version 2 that counts nothing"],
)
def test_events_of_a_control_group_are_read(cgroups, lines, files):
    cgroups(11, lines, files)
    # Postgres is in the same group, and nothing is known of Redis.
    cgroups(12, lines, {})
    found = ControlGroups.of({"server": 11, "postgres": 12, "redis": 13})
    assert found.events() == GroupEvents({"server": 2.5}, {"server": 3.0})


def test_kills_in_the_group_of_the_lab_are_not_those_of_a_service(cgroups):
    cgroups(os.getpid(), "0::/session\n", {})
    cgroups(11, "0::/session\n", {"session/memory.events": "oom_kill 3\n"})
    assert ControlGroups.of({"server": 11}).events() == GroupEvents()


def test_quota_of_the_generators_is_not_one_that_the_server_has_too(cgroups, tmp_path):
    cgroups(11, "0::/app\n", {"app/cpu.stat": "throttled_usec 1000000\n"})
    cgroups(21, "0::/load\n", {"load/cpu.stat": "throttled_usec 1000000\n"})
    cgroups(22, "0::/app\n", {})
    apart, together = QuotaMeter([11]), QuotaMeter([11])
    apart.watch({"k6 1": 21})
    together.watch({"k6 1": 22})
    for group in ("app", "load"):
        (tmp_path / "cgroup" / group / "cpu.stat").write_text("throttled_usec 1500000\n")
    time.sleep(0.5)
    assert 0.5 < apart.throttled() <= 1.0
    assert together.throttled() == 0.0
