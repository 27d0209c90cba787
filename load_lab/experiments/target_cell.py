"""Cells of an experiment with a target of the user's own."""

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from load_lab.errors import UsageError
from load_lab.experiments.cell import Measurement, capacity_of, load_of, result_of
from load_lab.experiments.matrix import Cell
from load_lab.experiments.schema import Workload
from load_lab.load.k6 import Run, run_k6
from load_lab.metrics.windows import Bounds
from load_lab.results.result import CAPACITY, Result
from load_lab.run.measurement import check_target_survived
from load_lab.stack.engine import Engine, settings_of
from load_lab.targets.app_process import put_data_back, running
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.file import Variation
from load_lab.targets.variants import require_expected, vary


def check_target_cell(cell: Cell, target: DeclaredTarget) -> None:
    """Check that the target can run the cell.

    Raises:
        UsageError: it has no such variant, or the cell needs the reference app.
    """
    vary(target, cell.target or Variation())
    if cell.workload.scenario != "replay" or cell.workload.entry != "nginx":
        raise UsageError("a target's load has no scenario and no entry: its mix says what is sent.")
    if cell.warm == "pages":
        raise UsageError('warm = "pages" is for the reference app. Warm a target with a workload.')


@dataclass
class TargetBench:
    """See `Bench` in cell.py. The target runs from `verify` to the end of `measure`."""

    engine: Engine
    target: DeclaredTarget
    bounds: Bounds
    _exit_stack: ExitStack = field(default_factory=ExitStack)

    def apply(self, cell: Cell) -> None:
        self.close()
        self._variation = cell.target or Variation()
        self._variant = vary(self.target, self._variation)

    def reset(self) -> None:
        put_data_back(self.target)

    def verify(self) -> None:
        settings = settings_of(self.engine)
        self._running = self._exit_stack.enter_context(running(self._variant, settings))
        if self._variation.expect:
            require_expected(self._running, self._variation.expect)

    def warm(self, cell: Cell, folder: Path) -> None:
        if isinstance(cell.warm, Workload):
            self._load(cell.warm, folder / "warm")

    def measure(self, cell: Cell, folder: Path) -> Measurement:
        with self._exit_stack:
            result = self._result(cell.workload, folder)
        variant = self._variation.model_copy(update={"git": self._variant.commit})
        return Measurement(result, {}, variant=variant)

    def _result(self, workload: Workload, folder: Path) -> Result:
        if workload.profile == CAPACITY:
            return capacity_of(self.engine, replace(self._running), workload, folder)
        run = self._load(workload, folder)
        check_target_survived(run)
        return result_of(self.engine, run, self.bounds)

    def close(self) -> None:
        """Stop the target of a cell whose measurement was aborted."""
        self._exit_stack.close()

    def _load(self, workload: Workload, folder: Path) -> Run:
        # A new object for each load: a token is fetched once for each.
        return run_k6(self.engine, replace(self._running), load_of(workload), folder)
