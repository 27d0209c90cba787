"""One measured run, from k6's start to the result on disk."""

import socket
from dataclasses import dataclass
from typing import Any

from lab.analysis.breakpoint import Bounds
from lab.analysis.collect import Collected, collect
from lab.analysis.prometheus import Prometheus
from lab.analysis.result import write_result
from lab.analysis.verdict import Verdict, judge
from lab.console import step
from lab.errors import LabError
from lab.load.k6 import Load, Run, run_k6
from lab.settings import LOOPBACK
from lab.stack import latency
from lab.stack.engine import Engine


@dataclass(frozen=True)
class Measured:
    """A verdict and the document that was written."""

    verdict: Verdict
    document: dict[str, Any]


def measure(engine: Engine, load: Load, bounds: Bounds) -> Measured:
    """Run k6, judge what it found, and write the result.

    Raises:
        LabError: the run could not be made or not be read; what k6 wrote is kept.
    """
    delays = latency.of_running(engine)
    run = run_k6(engine, load)
    with step("Reading the run back from Prometheus"):
        collected, verdict = read_back(engine, run, bounds)
        document = write_result(run, collected, verdict, bounds, engine.name, delays)
    check_target_survived(engine, run)
    return Measured(verdict, document)


def read_back(engine: Engine, run: Run, bounds: Bounds) -> tuple[Collected, Verdict]:
    """What a run left, and what it says.

    Raises:
        LabError: the stack changed meanwhile, or k6 sent nothing.
    """
    if engine.settings() != run.settings:
        raise LabError(
            "The stack was taken down, or its settings were changed, during the test: what was "
            f"measured is not one thing. k6's part is in {run.folder}."
        )
    collected = collect(run, Prometheus(run.settings.prometheus_url), bounds)
    return collected, judge(run, collected, bounds)


def check_target_survived(engine: Engine, run: Run) -> None:
    """A target that went down is not one that broke under load."""
    settings = run.settings
    try:
        # Only whether someone listens: an overloaded target would answer a request after minutes.
        socket.create_connection((LOOPBACK, settings.LAB_BACKEND_PORT), timeout=5).close()
    except ConnectionRefusedError:
        down = ", ".join(s.name for s in engine.services() if s.state in ("failed", "stopped"))
        raise LabError(
            f"The target went down during the test (not running: {down or 'the backend'}). What "
            f"was measured is in {run.folder}. See `lab status` and `lab logs backend`."
        ) from None
    except OSError:
        return
