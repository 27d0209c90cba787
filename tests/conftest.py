"""Fixtures of the lab's own tests: the `lab` command as a user runs it."""

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.paths import State
from lab.stack.native.supervision import leftovers

LAB = Path(sys.executable).parent / "lab"


@dataclass(frozen=True)
class Said:
    """What a command left: exit code and both outputs."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def is_one_message(self, code: int) -> bool:
        """Whether it ended as errors should: one message, no traceback, that exit code."""
        return self.code == code and "error" in self.err.lower() and "Traceback" not in self.err


@pytest.fixture(scope="session")
def lab():
    """Run `lab`; keyword arguments are environment variables."""

    def run(*argv: str, **environ: str) -> Said:
        done = subprocess.run(
            [str(LAB), *argv],
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
            # Against one that hangs: on containers a run of three cells takes 280 s on a quiet
            # machine, and over 600 s beside other work.
            timeout=1200,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The sample's report, for all who only read it: its folder, and its files."""
    from lab.report.document import write_report
    from tests.support.report_samples import CLAIMS, load, runs

    folder = tmp_path_factory.mktemp("report")
    header, cells = load()
    return folder, write_report(header, runs(cells), CLAIMS, folder)


@pytest.fixture
def other(tmp_path, lab, stack):
    """The environment of a second stack, which has nothing yet."""
    state = State(Path(os.environ["LAB_STATE_DIR"]).parent / f"test-{tmp_path.name}")
    ports = {k: str(int(v) + 500) for k, v in os.environ.items() if k.endswith("_PORT")}
    # The first one's is among the last that there are.
    ports["LAB_POSTGRES_PORT"] = str(int(os.environ["LAB_POSTGRES_PORT"]) - 500)
    environ = {**ports, "LAB_STATE_DIR": str(state.base)}
    yield environ
    left = leftovers(state)
    lab("down", **environ)
    shutil.rmtree(state.base, ignore_errors=True)
    assert left == []


@dataclass(frozen=True)
class Watched:
    """What a run left in the Prometheus at `url`, from `began` on; `arrived` while it ran."""

    url: str
    began: float
    arrived: dict[Any, float]


@pytest.fixture(scope="session")
def watched(lab, stack):
    """One real run for all tests that look at what a run leaves."""
    from lab.analysis.prometheus import Prometheus
    from lab.stack.native.supervision import wait_for
    from tests.support.answers import run_for_dashboards
    from tests.support.telemetry import arrivals, due

    url, began = stack.settings().prometheus_url, []
    # A stack that has just started has no rates yet, and the run is short.
    rates = 'side:cpu_cores:rate{side="load"}'
    wait_for(lambda: Prometheus(url).instant(rates) is not None, seconds=60, what="The first rates")
    run = threading.Thread(target=lambda: began.append(run_for_dashboards(lab)))
    run.start()
    arrived = arrivals(Prometheus(url), due("native"), within=60)
    run.join()
    assert began, "the run failed; what it said stands in the thread's traceback"
    return Watched(url, began[0], arrived)
