"""`lab run`: measures the cells of an experiment and stores each at once; can always be resumed."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from load_lab.console import Progress, note
from load_lab.errors import LabError
from load_lab.experiments import matrix
from load_lab.experiments.cell import Bench, describe, measure_cell
from load_lab.experiments.matrix import Cell
from load_lab.experiments.plan import Plan
from load_lab.experiments.run_folder import Store
from load_lab.experiments.schema import Axis
from load_lab.machine import preflight
from load_lab.metrics.windows import Bounds

# After this many failures in a row the cause is the stack, not a cell.
_GIVE_UP_AFTER = 3
# The search for the slowness.
_SLOWEST, _PRECISION = 1000.0, 0.01


class Slowness:
    """How many times as long as on an idle reference machine work takes, corrected by each cell.

    The first estimate has the weight of the work around one cell.
    """

    def __init__(self, estimate: float) -> None:
        self._actual = matrix.OVERHEAD_SECONDS * estimate
        self._cells: list[Cell] = []

    def correct(self, cell: Cell, seconds: float) -> None:
        """Add a measured cell, which took that long."""
        self._cells.append(cell)
        self._actual += seconds

    @property
    def value(self) -> float:
        """Return the slowness with which the measured cells are expected to take their time."""
        low, high = 0.0, _SLOWEST
        while high - low > _PRECISION:
            middle = (low + high) / 2
            low, high = (middle, high) if self._expected(middle) < self._actual else (low, middle)
        return high

    def _expected(self, slowness: float) -> float:
        cells = sum(cell.expected_seconds(slowness) for cell in self._cells)
        return matrix.OVERHEAD_SECONDS * slowness + cells


def run_plan(
    plan: Plan,
    store: Store,
    bench: Bench,
    unavailable: Mapping[str, str] | None = None,
    slowness: float = 1.0,
) -> list[str]:
    """Measure the cells that are not measured yet; returns a line for each failed cell.

    `unavailable` has the old stacks that can't run here, with the reasons: their cells are skipped.

    Raises:
        Interrupted: the user pressed Ctrl-C; the measured cells are stored.
        LabError: several cells failed in a row, so the stack must be broken.
    """
    measured = store.measured()
    remaining = [
        (index, cell, repeat)
        for index, (cell, repeat) in enumerate(plan.todo, start=1)
        if (cell.name, repeat) not in measured
        and not _skip_unavailable(index, cell, repeat, store, unavailable or {})
    ]
    with Progress() as progress:
        return _run_cells(remaining, len(plan.todo), store, bench, progress, Slowness(slowness))


def _skip_unavailable(
    index: int, cell: Cell, repeat: int, store: Store, unavailable: Mapping[str, str]
) -> bool:
    """Return whether the cell can't be measured here; if so, store it with the reason."""
    reason = unavailable.get(cell.legacy.stack or "") if cell.legacy else None
    if reason:
        folder = store.cell_folder(index, cell.name, repeat)
        store.write_cell(
            folder, describe(cell, repeat, time.time()).model_copy(update={"error": reason})
        )
    return bool(reason)


def _run_cells(
    cells: list[tuple[int, Cell, int]],
    count: int,
    store: Store,
    bench: Bench,
    progress: Progress,
    slowness: Slowness,
) -> list[str]:
    failures: list[str] = []
    consecutive = 0
    for position, (index, cell, repeat) in enumerate(cells):
        preflight.check_disk()
        started = time.monotonic()
        seconds = [each.expected_seconds(slowness.value) for _, each, _ in cells[position:]]
        progress.begin(f"{index}/{count} {cell.name}, repeat {repeat}", seconds[0], sum(seconds))
        folder = store.cell_folder(index, cell.name, repeat)
        error = measure_cell(bench, cell, repeat, store, folder, progress.show_step)
        if not error:
            slowness.correct(cell, time.monotonic() - started)
        consecutive = consecutive + 1 if error else 0
        if error:
            failures.append(f"  {cell.name}, repeat {repeat}: {error}")
            note(failures[-1])
        if consecutive == _GIVE_UP_AFTER:
            raise LabError(f"{consecutive} cells in a row failed:\n" + "\n".join(failures))
    return failures


def header(
    plan: Plan, store: Store, bounds: Bounds, machine: dict[str, Any], warnings: list[str]
) -> dict[str, Any]:
    """Return everything that is known before the first cell is measured."""
    experiment = plan.experiment
    return {
        "run": store.run,
        "experiment": plan.name,
        **experiment.model_dump(include={"title", "question", "source"}),
        "started": _now(),
        "ended": None,
        "state": "running",
        "quick": plan.quick,
        "repeats": plan.repeats,
        "definition": plan.text,
        "axes": [_axis(axis) for axis in experiment.axis],
        "plan": [{"name": cell.name, "repeat": repeat} for cell, repeat in plan.todo],
        "excluded": matrix.exclusions(experiment),
        "bounds": vars(bounds),
        **machine,
        "warnings": warnings,
        "published": [each.model_dump() for each in experiment.published],
        "claims": [claim.model_dump() for claim in experiment.claims],
        "report": experiment.report.model_dump(),
    }


def _axis(axis: Axis) -> dict[str, Any]:
    positions = [{"name": name, "title": each.title} for name, each in axis.positions.items()]
    return {"name": axis.name, "positions": positions}


def close(store: Store, state: str) -> None:
    """Store the final state in the header."""
    store.write_header(store.header() | {"state": state, "ended": _now()})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
