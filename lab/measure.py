"""One measured run, from k6's start to the result on disk."""

from dataclasses import dataclass
from typing import Any

import httpx

from lab.breakpoint import Bounds
from lab.collect import collect
from lab.console import step
from lab.engine import Engine
from lab.errors import LabError
from lab.k6 import Load, Run, run_k6
from lab.prometheus import Prometheus
from lab.results import write_result
from lab.settings import Settings
from lab.verdict import Verdict, judge


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
    run = run_k6(engine, load)
    settings = run.settings
    if engine.settings() != settings:
        raise LabError(
            "The stack was taken down, or its settings were changed, during the test: what was "
            f"measured is not one thing. k6's part is in {run.folder}."
        )
    with step("Reading the run back from Prometheus"):
        collected = collect(run, Prometheus(settings.prometheus_url), bounds)
        verdict = judge(run, collected, bounds)
        document = write_result(run, collected, verdict, bounds, settings, engine.name)
    _check_target_survived(engine, settings, run)
    return Measured(verdict, document)


def _check_target_survived(engine: Engine, settings: Settings, run: Run) -> None:
    """A target that went down is not one that broke under load."""
    try:
        httpx.get(f"{settings.backend_url}/healthz", timeout=settings.LAB_PROXY_TIMEOUT)
    except httpx.ConnectError:
        down = ", ".join(s.name for s in engine.services() if s.state in ("failed", "stopped"))
        raise LabError(
            f"The target went down during the test (not running: {down or 'the backend'}). What "
            f"was measured is in {run.folder}. See `lab status` and `lab logs backend`."
        ) from None
    except httpx.HTTPError:
        return
