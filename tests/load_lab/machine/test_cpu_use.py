"""CPU time of services that are found only under load."""

import subprocess
import sys
import time

import psutil
import pytest

from load_lab.machine.cpu_use import CpuSampler
from load_lab.settings import load_settings
from load_lab.stack.native.supervision import wait_for

BUSY = "import time\nwhile True:\n    sum(range(20_000)); time.sleep(0.0005)"


@pytest.mark.parametrize("found_after", [0, 2, None])
def test_service_that_is_found_late_counts_from_the_beginning(found_after):
    """None: at the end only, as in a short load."""
    with subprocess.Popen([sys.executable, "-c", BUSY]) as busy:
        ended = False

        def find():
            late = found_after is not None and len(sampler.uses) >= found_after
            return {"postgres": busy.pid} if ended or late else {}

        sampler = None
        sampler = CpuSampler(load_settings(), {}, lambda: find() if sampler else {})
        used, began = _seconds(busy), time.monotonic()
        with sampler:
            wait_for(lambda: len(sampler.uses) >= 3, seconds=30, what="samples")
            ended = True
        cores = (_seconds(busy) - used) / (time.monotonic() - began)
        busy.kill()
    assert all("postgres" in use.services for use in sampler.uses)
    mean = sum(use.services["postgres"] for use in sampler.uses) / len(sampler.uses)
    assert mean == pytest.approx(cores, rel=0.35)


def _seconds(process):
    times = psutil.Process(process.pid).cpu_times()
    return times.user + times.system
