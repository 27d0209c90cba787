"""One run of `lab k6`: measured, stored in results/ and drawn."""

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab_settings.messages import problem
from pydantic import BaseModel, ValidationError

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.interrupts import uninterrupted
from load_lab.load.k6 import InterruptedRun, Run, run_k6
from load_lab.load.load import Load
from load_lab.load.summary import read_summary
from load_lab.metrics.plan import Plan
from load_lab.metrics.windows import Bounds
from load_lab.paths import project
from load_lab.results.provenance import SCHEMA_VERSION, Host, host, relative, write_json
from load_lab.results.result import Result
from load_lab.run.early_stop import EarlyStop
from load_lab.run.measurement import check_target_survived, read_result
from load_lab.settings import Settings, stored_settings
from load_lab.stack import latency
from load_lab.stack.engine import Engine
from load_lab.targets.target import Target


@dataclass(frozen=True)
class SingleRun:
    """A result and the conditions of its measurement; `files` are relative to the project's folder.
    `latency` has the delays in ms just before the run, None if unknown.
    """

    result: Result
    files: dict[str, str]
    bounds: Bounds
    settings: Settings
    host: dict[str, Any]
    latency: dict[str, Any] | None

    def document(self) -> dict[str, Any]:
        """Return the content of result.json; the time series come last."""
        result = self.result.document()
        series = {name: result.pop(name) for name in ("windows", "cpu", "signals")}
        return {
            **result,
            "files": self.files,
            "schema_version": SCHEMA_VERSION,
            "bounds": asdict(self.bounds),
            "settings": self.settings.model_dump(),
            "host": self.host,
            "latency": self.latency,
            **series,
        }


class _Conditions(BaseModel):
    """The fields of result.json next to the result's."""

    files: dict[str, str]
    bounds: Bounds
    settings: dict[str, str | int]
    host: Host
    latency: dict[str, Any] | None = None


def parse_single_run(document: dict[str, Any]) -> SingleRun:
    """Return the run of a stored result.json.

    Raises:
        UsageError: its settings are of another version of the lab.
        ValueError: the document is not a run's.
    """
    try:
        result = Result.model_validate(document)
        conditions = _Conditions.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {problem(first)}") from None
    return SingleRun(
        result,
        conditions.files,
        conditions.bounds,
        stored_settings(conditions.settings, result.testid),
        conditions.host.model_dump(),
        conditions.latency,
    )


def run_once(
    engine: Engine,
    target: Target,
    load: Load,
    bounds: Bounds,
    *,
    early_stop: bool = True,
    quiet: bool = False,
    accept_changes: bool = False,
) -> SingleRun:
    """Run k6, read the run back, and store its result. A ramp ends soon after its break, unless
    `early_stop` is false. With `quiet` k6's messages go to k6.log in the run's folder;
    `accept_changes`: settings may change during it.

    Raises:
        LabError: the run failed, or could not be read back; k6's files are preserved.
        Interrupted: a signal arrived; what was counted until then is stored.
    """
    delays = latency.measure_running(engine)
    should_stop = _early_stop(engine, load, bounds) if early_stop else None
    folder = project().results / load.testid if quiet else None
    try:
        run = run_k6(engine, target, load, folder, should_stop)
    except InterruptedRun as interrupted:
        with (
            uninterrupted("Storing what was counted first; a moment."),
            suppress(LabError, OSError),
        ):
            _store(engine, interrupted.run, bounds, delays, accept_changes)
        raise
    single_run = _store(engine, run, bounds, delays, accept_changes)
    check_target_survived(run)
    return single_run


def _store(
    engine: Engine, run: Run, bounds: Bounds, delays: dict[str, Any] | None, accept_changes: bool
) -> SingleRun:
    with step("Reading the run back from Prometheus"):
        result = read_result(engine, run, bounds, accept_changes=accept_changes)
        files = _files(run, result, bounds)
        machine = host(run.settings, engine.name)
        single_run = SingleRun(result, files, bounds, run.settings, machine, delays)
        write_json(run.folder / "result.json", single_run.document())
    return single_run


def _early_stop(engine: Engine, load: Load, bounds: Bounds) -> EarlyStop | None:
    settings = engine.settings()
    return EarlyStop(load.testid, settings.prometheus_url, bounds, load.names) if settings else None


def _files(run: Run, result: Result, bounds: Bounds) -> dict[str, str]:
    files = {"folder": run.folder, "summary": run.summary_file}
    files["result"] = run.folder / "result.json"
    if result.windows:
        # Altair takes half a second to import, which would delay every other command.
        from load_lab.run.chart import draw

        title = f"{result.profile} of {result.scenario}; {run.target.description}"
        files["picture"] = draw(result, bounds, title, run.folder / run.load.profile)
    if result.bottleneck and result.signals:
        from load_lab.diagnosis import chart

        files["bottleneck"] = chart.draw(result, result.bottleneck, run.folder / "bottleneck")
    return {name: relative(path) for name, path in files.items()}


def plan_and_start(run: SingleRun) -> tuple[Plan, float]:
    """Return the plan of a measured load, and its start (Unix time).

    Raises:
        LabError: the run has no plan or start.
    """
    summary = read_summary(project().folder / Path(run.files["summary"]))
    if summary.plan is None or summary.started is None:
        raise LabError(f"{run.result.testid} has no course in time: {run.result.verdict}")
    return summary.plan, summary.started
