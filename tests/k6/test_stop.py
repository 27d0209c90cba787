"""A load that is told to stop before its time."""

import time

from lab.analysis.measure import read_back
from lab.analysis.windows import Bounds
from lab.load.k6 import Load, new_testid, run_k6


def test_a_load_ends_with_its_summary_once_it_is_told_to_stop(stack, tmp_path):
    load = Load("hold", "list", rate=20, duration="60s", testid=new_testid("hold"))
    began, calls = time.monotonic(), []

    def should_stop():
        calls.append(time.monotonic())
        return time.monotonic() - began > 8

    run = run_k6(stack, load, tmp_path, should_stop=should_stop)
    assert time.monotonic() - began < 40
    assert 20 <= read_back(stack, run, Bounds()).requests < 20 * 40
    # It is polled each second, and not any more once it said so.
    assert len(calls) >= 5
    assert calls[-1] - began > 8
