"""One run, as `lab k6` makes it: measured, stored in results/ and drawn."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.analysis import queries
from lab.analysis.measure import check_target_survived, read_back
from lab.analysis.prometheus import Prometheus
from lab.analysis.provenance import host, relative, write_json
from lab.analysis.result import SCHEMA_VERSION, Result
from lab.analysis.windows import PUSH_SECONDS, Bounds
from lab.console import step
from lab.errors import LabError
from lab.load.k6 import Load, Run, run_k6
from lab.load.plan import Plan
from lab.load.summary import read_summary
from lab.paths import ROOT
from lab.settings import Settings
from lab.stack import latency
from lab.stack.engine import Engine


@dataclass(frozen=True)
class SingleRun:
    """A result with the conditions under which it was measured; `files` are named from the
    project's folder on. `latency` has the delays in ms just before the run, None where unknown.
    """

    result: Result
    files: dict[str, str]
    bounds: Bounds
    settings: Settings
    host: dict[str, Any]
    latency: dict[str, Any] | None

    def document(self) -> dict[str, Any]:
        """result.json; what happened second by second comes last."""
        result = self.result.document()
        series = {name: result.pop(name) for name in ("windows", "cpu")}
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


def run_once(engine: Engine, load: Load, bounds: Bounds) -> SingleRun:
    """Run k6, read the run back, and store its result.

    Raises:
        LabError: the run could not be made or not be read; what k6 wrote is kept.
    """
    delays = latency.of_running(engine)
    run = run_k6(engine, load)
    with step("Reading the run back from Prometheus"):
        result = read_back(engine, run, bounds)
        measured = SingleRun(
            result,
            _files(run, result, bounds),
            bounds,
            run.settings,
            host(run.settings, engine.name),
            delays,
        )
        write_json(run.folder / "result.json", measured.document())
    check_target_survived(engine, run)
    return measured


def _files(run: Run, result: Result, bounds: Bounds) -> dict[str, str]:
    files = {"folder": run.folder, "summary": run.summary_file}
    files["result"] = run.folder / "result.json"
    if result.windows:
        # Altair takes half a second to import, which every other command would pay.
        from lab.charts.run import draw

        title = _title(result, run.settings)
        files["picture"] = draw(result, bounds, title, run.folder / run.load.profile)
    return {name: relative(path) for name, path in files.items()}


def _title(result: Result, settings: Settings) -> str:
    """What was measured, on what: a chart travels without its document."""
    return (
        f"{result.profile} of {result.scenario}; "
        f"{settings.LAB_SERVER} × {settings.LAB_WORKERS}, detail {settings.LAB_DETAIL}, "
        f"booking {settings.LAB_BOOKING}, Redis cache {settings.LAB_REDIS_CACHE}, "
        f"Nginx cache {settings.LAB_NGINX_CACHE}"
    )


def course(run: SingleRun) -> tuple[Plan, float]:
    """The plan of a measured load, and when it began (Unix time).

    Raises:
        LabError: it has none.
    """
    summary = read_summary(ROOT / Path(run.files["summary"]))
    if summary.plan is None or summary.started is None:
        raise LabError(f"{run.result.testid} has no course in time: {run.result.verdict}")
    return summary.plan, summary.started


def by_status(
    prometheus: Prometheus, testid: str, started: float, seconds: float
) -> dict[str, int]:
    """Answers of the load by status code; `seconds` with its last answers."""
    end = started + seconds + 2 * PUSH_SECONDS
    found = prometheus.instant_by_label(queries.requests_by_status(testid), "status", end)
    return {status: round(count) for status, count in sorted(found.items())}
