"""How well a run at a third of the load predicts the capacity, in cells that the CPU limits.

`make bench-prediction` runs it; a run that was stopped goes on where it ended.
"""

import argparse
import shutil
import time

from rich.table import Table

from load_lab.capacity.target_capacity import find_target_capacity
from load_lab.console import note, out
from load_lab.diagnosis.reading import expected_capacity
from load_lab.errors import Interrupted, LabError
from load_lab.load.load import Load, new_testid
from load_lab.load.workloads import WRITING_SCENARIOS
from load_lab.machine.waking import wake_seconds
from load_lab.metrics.windows import Bounds
from load_lab.options import current_engine
from load_lab.paths import ROOT, project
from load_lab.run.single_run import run_once
from load_lab.settings import update_settings
from load_lab.stack.engine import Engine
from load_lab.stack.exclusive import ExclusiveUse, exclusive_use, prepare
from load_lab.targets.reference.app import ReferenceApp
from load_lab.targets.reference.two_stacks import running_stack
from tests.benchmarks.records import Record, by_series, each_missing, share, store

NAME = "prediction"
_NEAR = 0.15
_FAST = ("LAB_DETAIL=fast", "LAB_BOOKING=fast")
_GTHREAD = ("LAB_SERVER=gunicorn-gthread", "LAB_WORKERS=2", "LAB_THREADS=8")
# Scenario and settings.
CELLS = {
    "lists": ("list", _FAST),
    "lists, threads": ("list", (*_FAST, *_GTHREAD)),
    "lists, granian": ("list", (*_FAST, "LAB_SERVER=granian")),
    "quick details": ("detail", _FAST),
    "quick details, threads": ("detail", (*_FAST, *_GTHREAD)),
    "quick details, granian": ("detail", (*_FAST, "LAB_SERVER=granian")),
    "quick details, uvicorn": ("detail", (*_FAST, "LAB_SERVER=uvicorn")),
    "quick details, Redis cache": ("detail", (*_FAST, "LAB_REDIS_CACHE=versioned")),
    "quick bookings": ("booking", _FAST),
    "journeys": ("journey", _FAST),
}


def run_cell(engine: Engine, stack: ExclusiveUse, name: str) -> Record:
    """Search the capacity of a cell before and after holding a third of it, since the machine's
    speed wanders; return the rates.
    """
    scenario, settings = CELLS[name]
    with engine.empty_caches(update_settings(stack.base, list(settings))):
        pass
    before = _search(engine, stack, name)
    rate = max(round(before / 3), 1)
    predicted, wake_ms = _predict(engine, stack, scenario, rate)
    after = _search(engine, stack, name)
    return {
        "measured": round((before + after) / 2, 2),
        "searches": [before, after],
        "rate": rate,
        "predicted": predicted,
        "wake_ms": wake_ms,
        "started": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    }


def _search(engine: Engine, stack: ExclusiveUse, name: str) -> float:
    scenario, _ = CELLS[name]
    if scenario in WRITING_SCENARIOS:
        prepare(engine, stack)
    found = find_target_capacity(running_stack(engine, stack.base), scenario, note)
    if found.outcome == "generator":
        raise LabError(f"{name}: {found.headline}, so its capacity is not known.")
    return found.rate


def _predict(
    engine: Engine, stack: ExclusiveUse, scenario: str, rate: int
) -> tuple[float | None, float | None]:
    """Return the capacity that a load at `rate` predicts, and the `wake_ms` that it assumes."""
    if scenario in WRITING_SCENARIOS:
        prepare(engine, stack)
    wake_seconds.cache_clear()
    load = Load("hold", scenario, rate=rate, duration="30s", testid=new_testid("third"))
    held = run_once(engine, ReferenceApp(engine), load, Bounds(), quiet=True)
    shutil.rmtree(ROOT / held.files["folder"])
    predicted = expected_capacity(held.result, held.settings)
    if predicted.why:
        note(f"Not predicted: {predicted.why}")
    return predicted.rate, held.result.wake_ms


def _error(record: Record) -> float:
    return (record["predicted"] or 0.0) / record["measured"] - 1


def table() -> Table:
    result = Table(title="Predicted by a third of the load, and measured", title_justify="left")
    for column in ("cell", "held", "predicted", "waking", "measured", "error"):
        result.add_column(column, justify="left" if column == "cell" else "right")
    for name, runs in by_series(NAME).items():
        for run in runs:
            held, predicted, measured = (
                f"{run[key] or 0:.1f}/s" for key in ("rate", "predicted", "measured")
            )
            waking = f"{run['wake_ms']} ms"
            result.add_row(name, held, predicted, waking, measured, f"{_error(run):+.1%}")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="of each cell")
    arguments = parser.parse_args()
    engine = current_engine()
    with exclusive_use(engine) as stack:
        for name in CELLS:
            for number in each_missing(NAME, name, arguments.runs):
                try:
                    store(NAME, name, number, run_cell(engine, stack, name))
                except Interrupted:
                    raise
                except LabError as error:
                    note(f"Not measured: {error}")
    out.print(table())
    runs = [run for series in by_series(NAME).values() for run in series]
    near = share(runs, lambda run: abs(_error(run)) <= _NEAR)
    out.print(f"within {_NEAR:.0%}: {near * len(runs):.0f} of {len(runs)}")
    out.print(f"Runs: {project().results}/bench-{NAME}.jsonl. Remove it to start anew.")


if __name__ == "__main__":
    main()
