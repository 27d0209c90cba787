"""One cell: reset the stack, verify its layers, warm the caches, load, and store the result."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from lab_settings.durations import seconds

from load_lab.capacity.measurement import CapacityOptions, search, search_result
from load_lab.capacity.timeline import Slo
from load_lab.errors import Interrupted, LabError
from load_lab.experiments.matrix import Cell
from load_lab.experiments.run_folder import CellRun, Store
from load_lab.experiments.schema import Parts, Workload
from load_lab.load import Profile
from load_lab.load.k6 import Run, run_k6
from load_lab.load.load import Load, new_testid
from load_lab.load.page_change import require_same_pages
from load_lab.metrics.windows import Bounds
from load_lab.results.result import CAPACITY, Result
from load_lab.run.measurement import check_target_survived, read_result
from load_lab.settings import Settings, update_live_settings
from load_lab.stack.engine import Engine
from load_lab.targets.file import Variation
from load_lab.targets.reference.app import at_entry
from load_lab.targets.reference.cells import HotelCell
from load_lab.targets.target import Target


@dataclass(frozen=True)
class Measurement:
    """A cell's result, its settings, the delays in ms just before its load, an old stack's report
    about itself, and the variant of a target with the hash of its commit.
    """

    result: Result
    settings: dict[str, str]
    latency: dict[str, Any] | None = None
    legacy: dict[str, Any] | None = None
    variant: Variation | None = None


class Bench(Protocol):
    """The steps of a cell, in their order."""

    def apply(self, cell: Cell) -> None:
        """Set the cell's settings for the next reset."""

    def reset(self) -> None:
        """Restore the database, empty the caches, activate the settings: one stop and one start."""

    def verify(self) -> None:
        """Verify the layers, and leave the caches empty."""

    def warm(self, cell: Cell, folder: Path) -> None:
        """Fill the caches as the cell defines."""

    def measure(self, cell: Cell, folder: Path) -> Measurement:
        """Run the load, and return the measurement."""


def measure_cell(
    bench: Bench,
    cell: Cell,
    repeat: int,
    store: Store,
    folder: Path,
    report_step: Callable[[str], None],
) -> str | None:
    """Measure one cell and store it at once; returns its error, if any."""
    folder.mkdir(parents=True, exist_ok=True)
    start = time.time()
    error: str | None = None
    measurement: dict[str, Any] = {}
    try:
        measurement = vars(_run_steps(bench, cell, folder, report_step))
    except Interrupted:
        raise
    except LabError as failure:
        error = str(failure)
    description = describe(cell, repeat, start)
    values = {name: value for name, value in measurement.items() if value is not None}
    state = {"state": "failed" if error else "measured", "error": error}
    store.write_cell(folder, description.model_copy(update=values | state))
    return error


def describe(cell: Cell, repeat: int, start: float) -> CellRun:
    """Return the description of a cell that is not measured yet."""
    return CellRun(
        name=cell.name,
        repeat=repeat,
        title=cell.title,
        axes=cell.axes,
        settings=cell.settings,
        workload=_parts(cell.workload),
        warm=cell.warm if isinstance(cell.warm, str) else _parts(cell.warm),
        legacy=cell.legacy.model_dump() if cell.legacy else None,
        variant=cell.target,
        began=datetime.fromtimestamp(start, UTC).isoformat(timespec="seconds"),
        cell_seconds=round(time.time() - start, 1),
        state="not measured",
    )


def _parts(workload: Workload) -> Parts:
    return Parts.model_validate(workload.model_dump(exclude_none=True))


def _run_steps(
    bench: Bench, cell: Cell, folder: Path, report_step: Callable[[str], None]
) -> Measurement:
    """Run the steps of one cell.

    Raises:
        LabError: a step failed.
    """
    report_step("settings")
    bench.apply(cell)
    report_step("reset")
    bench.reset()
    report_step("verify")
    bench.verify()
    report_step("warm")
    bench.warm(cell, folder)
    report_step("measure")
    return bench.measure(cell, folder)


@dataclass
class StackBench:
    """The bench on a running stack. A cell's settings override `base`."""

    engine: Engine
    base: Settings
    bounds: Bounds
    # Whether a load has written since the last restore of the database.
    _dirty: bool = True

    def apply(self, cell: Cell) -> None:
        self._cell = cell
        self._hotel = HotelCell(self.engine, update_live_settings(self.base, cell.settings))

    def reset(self) -> None:
        self._hotel.reset(restore=self._dirty)
        self._dirty = self._cell.reset == "database"

    def verify(self) -> None:
        self._latency = self._hotel.verify()

    def warm(self, cell: Cell, folder: Path) -> None:
        if cell.warm == "pages":
            self._hotel.visit_pages()
        elif isinstance(cell.warm, Workload):
            self._load(cell.warm, folder / "warm")

    def measure(self, cell: Cell, folder: Path) -> Measurement:
        before = self._hotel.counters()
        result = self._result(cell.workload, folder)
        counts = self._hotel.counts_since(before)
        backend = {
            "builds": {route: int(count) for route, count in counts.builds.items()},
            "cache": result.cache | counts.by_layer(),
        }
        settings = self._hotel.settings.as_env()
        return Measurement(result.model_copy(update=backend), settings, self._latency)

    def _result(self, workload: Workload, folder: Path) -> Result:
        if workload.profile == CAPACITY:
            target = at_entry(self.engine, workload.entry)
            return capacity_of(self.engine, target, workload, folder)
        run = self._load(workload, folder)
        result = result_of(self.engine, run, self.bounds)
        check_target_survived(run)
        return result

    def _load(self, workload: Workload, folder: Path) -> Run:
        target = at_entry(self.engine, workload.entry)
        return run_k6(self.engine, target, load_of(workload), folder)


def load_of(workload: Workload) -> Load:
    """Return k6's load for the workload, with a new name; of a search, one of its loads."""
    options = workload.model_dump(exclude={"entry"}, exclude_none=True)
    if workload.profile == CAPACITY:
        options |= {"profile": Profile.TRIAL, "rate": 1}
    return Load(**options, testid=new_testid(workload.profile))


def capacity_of(engine: Engine, target: Target, workload: Workload, folder: Path) -> Result:
    """Search the capacity, and return it as a cell's result; the search is stored in `folder`.

    Raises:
        LabError: the target failed.
    """
    limits = Bounds(p95_ms=workload.bound_ms or Bounds().p95_ms)
    slo = Slo(limits.p95_ms / 1000, limits.error_ratio)
    options = CapacityOptions(slo, workload.scenario, workload.only, seconds(workload.duration))
    document = search(engine, target, options, folder / new_testid("capacity"), lambda _load: None)
    return search_result(document)


def result_of(engine: Engine, run: Run, bounds: Bounds) -> Result:
    """Return the result of a cell's load, from any kind of target.

    Raises:
        LabError: the run could not be read back.
    """
    require_same_pages(run.load.testid, run.page_change)
    result = read_result(engine, run, replace(bounds, p95_ms=run.load.bound_ms))
    if result.outcome == "unrecorded":
        raise LabError(f"{result.verdict}. See `lab logs prometheus`.")
    return result
