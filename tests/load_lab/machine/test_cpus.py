"""CPUs that do not sleep for a while."""

import os
from pathlib import Path

import pytest

from load_lab.machine import cpus

FILE = Path("/dev/cpu_dma_latency")


@pytest.mark.skipif(not os.access(FILE, os.W_OK), reason=f"this user can't write {FILE}")
def test_cpus_are_awake_for_the_block_alone():
    """The kernel's file contains the highest latency that all programs allow, in µs. Another test
    may have it open, so what this process has open counts.
    """
    assert not _is_open()
    with cpus.awake():
        assert _is_open()
        assert int.from_bytes(FILE.read_bytes()[:4], "little") == 0
    assert not _is_open()


def _is_open():
    return str(FILE) in {os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()}


def test_cpus_may_sleep_where_nobody_can_forbid_it(tmp_path, monkeypatch):
    monkeypatch.setattr(cpus, "_WAKE_LATENCY", tmp_path / "missing/file")
    with pytest.raises(OSError, match="of the block"), cpus.awake():
        raise OSError("of the block")
