"""Cells whose load an old stack's arm serves; the backend is idle during the load."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from load_lab.errors import LabError, UsageError
from load_lab.experiments.cell import Bench, Measurement, load_of, result_of
from load_lab.experiments.legacy.arms import arm
from load_lab.experiments.legacy.runner import RunningArm
from load_lab.experiments.legacy.stacks import find
from load_lab.experiments.matrix import Cell
from load_lab.experiments.schema import Legacy, Workload
from load_lab.load.k6 import Run, run_k6
from load_lab.machine.processes import cores_used
from load_lab.metrics.windows import Bounds
from load_lab.results.result import CAPACITY
from load_lab.run.measurement import check_target_survived
from load_lab.settings import Settings, update_live_settings, update_settings
from load_lab.stack.engine import Engine

# Settings of a cell that apply to an old stack: those of Postgres and k6, not of the backend.
_SHARED_SETTINGS = (
    *("LAB_LATENCY_MS", "LAB_LATENCY_DIRECTION"),
    *("LAB_DB_MAX_CONNECTIONS", "LAB_CLIENT_TIMEOUT"),
)
# A master process with idle workers uses a thousandth of a core.
_IDLE_CORES, _IDLE_SECONDS = 0.05, 0.5


def check_legacy(cell: Cell, settings: Settings) -> None:
    """Check that the old stack can run the cell.

    Raises:
        UsageError: it lacks the scenario, the route, the delay or the pages.
    """
    if cell.legacy is None:
        return
    stack, _ = find(*_stack_and_arm(cell.legacy))
    load = cell.workload
    if load.scenario != "workbench" or load.route not in stack.routes:
        raise UsageError(
            f"{stack.name} can't answer the scenario {load.scenario}, route {load.route}. It has "
            f"the scenario workbench with the routes {', '.join(stack.routes)}."
        )
    _check_delay(stack.name, settings)
    if load.profile == CAPACITY:
        raise UsageError(f"{stack.name} has no {CAPACITY}: that is for the backend and targets.")
    if cell.warm == "pages":
        raise UsageError(f'{stack.name} has no pages: warm = "pages" is for the reference app.')


def _check_delay(stack: str, settings: Settings) -> None:
    """Reject a delay.

    Raises:
        UsageError: the cell has a delay, but toxiproxy delays only the backend.
    """
    latency = settings.LAB_LATENCY_MS
    if latency > 0:
        raise UsageError(
            f"{stack} can't be delayed: toxiproxy stands before the backend alone. Set "
            f"LAB_LATENCY_MS=0 instead of {latency}."
        )


def _stack_and_arm(legacy: Legacy) -> tuple[str, str]:
    return legacy.stack or "", legacy.arm or ""


@dataclass
class LegacyBench:
    """See `load_lab.experiments.cell.Bench`. The arm runs from `verify` to the end of `measure`."""

    engine: Engine
    base: Settings
    bounds: Bounds
    _exit_stack: ExitStack = field(default_factory=ExitStack)

    def apply(self, cell: Cell) -> None:
        self._cell = cell
        running = self.engine.settings() or self.base
        values = update_live_settings(self.base, cell.settings).as_env()
        self._settings = update_settings(
            running, [f"{name}={values[name]}" for name in _SHARED_SETTINGS]
        )
        if self._settings != running:
            self.engine.apply(self._settings)

    def reset(self) -> None:
        """Restart a busy stack, for example after an overload; the arm's load writes nothing."""
        if _is_busy(self.engine):
            with self.engine.empty_caches():
                pass

    def verify(self) -> None:
        names = _stack_and_arm(self._cell.legacy or Legacy())
        self._running: RunningArm = self._exit_stack.enter_context(arm(self.engine, *names))

    def warm(self, cell: Cell, folder: Path) -> None:
        if isinstance(cell.warm, Workload):
            self._load(cell.warm, folder / "warm")

    def measure(self, cell: Cell, folder: Path) -> Measurement:
        with self._exit_stack:
            run = self._load(cell.workload, folder)
            check_target_survived(run)
        result = result_of(self.engine, run, self.bounds)
        _check_idle(result.services_cpu)
        return Measurement(result, self._settings.as_env(), legacy=self._running.facts)

    def close(self) -> None:
        """Stop the arm of a cell whose measurement was aborted."""
        self._exit_stack.close()

    def _load(self, workload: Workload, folder: Path) -> Run:
        return run_k6(self.engine, self._running.target, load_of(workload), folder)


@dataclass
class CombinedBench:
    """The current stack or an old stack's arm, by cell; never both under load."""

    current: Bench
    legacy: LegacyBench

    def apply(self, cell: Cell) -> None:
        self.legacy.close()
        self._bench: Bench = self.legacy if cell.legacy else self.current
        self._bench.apply(cell)

    def reset(self) -> None:
        self._bench.reset()

    def verify(self) -> None:
        self._bench.verify()

    def warm(self, cell: Cell, folder: Path) -> None:
        self._bench.warm(cell, folder)

    def measure(self, cell: Cell, folder: Path) -> Measurement:
        return self._bench.measure(cell, folder)


def _is_busy(engine: Engine) -> bool:
    """Return whether the backend or Nginx is busy."""
    pids = {name: pid for name, pid in engine.pids().items() if _is_target(name)}
    return cores_used(pids, _IDLE_SECONDS) > _IDLE_CORES


def _check_idle(cores: dict[str, float]) -> None:
    """Check that the backend was idle.

    Raises:
        LabError: the backend used CPU time that the arm lacked.
    """
    busy = {name: load for name, load in cores.items() if _is_target(name) and load > _IDLE_CORES}
    if busy:
        raise LabError(
            f"The running stack was busy while the old one was measured (cores: {busy}), so the "
            "result is not valid. Send no other requests to it during the run."
        )


def _is_target(name: str) -> bool:
    return name == "nginx" or (name.startswith("backend") and name != "backend-metrics")
