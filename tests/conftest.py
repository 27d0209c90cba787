"""Fixtures of the lab's tests: the `lab` command as a user runs it."""

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from load_lab.paths import State
from load_lab.stack.native.supervision import leftovers
from tests.support.lab_command import CommandResult, run_lab

if TYPE_CHECKING:
    from tests.support.dashboard_runs import DashboardRuns

LAB = Path(sys.executable).parent / "lab"


@pytest.fixture(scope="session")
def lab():
    """Return a function that runs `lab`; keyword arguments are environment variables."""

    def run(*argv: str, **environ: str) -> CommandResult:
        # Limit for a command that hangs: on containers a run of three cells takes 280 s on a quiet
        # machine, and over 600 s in parallel with other work.
        return run_lab(argv, {**os.environ, **environ}, timeout=1200)

    return run


@pytest.fixture(scope="session")
def report_files(tmp_path_factory):
    """Write the sample's report once for all tests that only read it; return folder and files."""
    from load_lab.experiments.report.writing import write_report
    from tests.support.report_samples import CLAIMS, load, runs

    folder = tmp_path_factory.mktemp("report")
    header, cells = load()
    return folder, write_report(header, runs(cells), CLAIMS, folder)


@pytest.fixture
def second_stack(tmp_path, lab, stack):
    """Yield the environment of a second, empty stack."""
    state = _second_state(tmp_path.name)
    yield _second_environ(state)
    processes = leftovers(state)
    lab("down", **_second_environ(state))
    _remove(state)
    assert processes == []


@pytest.fixture(scope="session")
def prepared_state(lab, stack):
    """Start a second stack once, and stop it: yield its secrets and data."""
    state = _second_state("prepared")
    for command in ("up", "down"):
        result = lab(command, **_second_environ(state))
        assert result.code == 0, result.err
    yield state
    _remove(state)


@pytest.fixture
def prepared_stack(second_stack, prepared_state):
    """Return the environment of a second stack that is down, with a copy of prepared data."""
    state = State(Path(second_stack["LAB_STATE_DIR"]))
    for source, copy in ((prepared_state.base, state.base), _postgres_of(prepared_state, state)):
        # With the owner: Postgres's user.
        subprocess.run(["cp", "-a", f"{source}/.", str(copy)], check=True)
    return second_stack


def _postgres_of(*states):
    for state in states:
        state.postgres.mkdir(parents=True, exist_ok=True)
    return [state.postgres for state in states]


def _second_state(name):
    return State(Path(os.environ["LAB_STATE_DIR"]).parent / f"test-{name}")


def _second_environ(state):
    ports = {k: str(int(v) + 500) for k, v in os.environ.items() if k.endswith("_PORT")}
    # The first stack's port is near the end of the port range.
    ports["LAB_POSTGRES_PORT"] = str(int(os.environ["LAB_POSTGRES_PORT"]) - 500)
    return {**ports, "LAB_STATE_DIR": str(state.base)}


def _remove(state):
    for folder in (state.base, state.postgres.parent):
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class TelemetryRun:
    """The data of `runs` in the Prometheus at `url`; `arrivals`: signals during them."""

    url: str
    runs: "DashboardRuns"
    arrivals: dict[Any, float]


@pytest.fixture(scope="session")
def telemetry_run(lab, stack):
    """Start real runs once for all tests that check the data of a run."""
    from load_lab.metrics.prometheus import Prometheus
    from load_lab.stack.native.supervision import wait_for
    from tests.support.dashboard_runs import run_for_dashboards
    from tests.support.telemetry import arrivals, required_signals

    url, runs = stack.settings().prometheus_url, []
    # Wait: a stack that has just started has no rates yet, and the run is short.
    rates = 'side:cpu_cores:rate{side="load"}'
    wait_for(lambda: Prometheus(url).instant(rates) is not None, seconds=60, what="The first rates")
    run = threading.Thread(target=lambda: runs.append(run_for_dashboards(lab)))
    run.start()
    arrival_times = arrivals(Prometheus(url), required_signals("native"), within=60)
    run.join()
    assert runs, "a run failed; what it said stands in the thread's traceback"
    return TelemetryRun(url, runs[0], arrival_times)
