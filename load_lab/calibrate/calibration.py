"""The steps of `lab calibrate` around its cells: stack, order and document."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from load_lab.calibrate.cells import Cell, select_cells
from load_lab.calibrate.checks import SHARES, Check, Measurement, compare
from load_lab.calibrate.measurement import measure
from load_lab.calibrate.noise import Noise, unsteady
from load_lab.console import Progress, note
from load_lab.errors import Interrupted, LabError
from load_lab.machine import preflight
from load_lab.paths import project
from load_lab.results.provenance import SCHEMA_VERSION, host, relative, write_json
from load_lab.results.result import without_series
from load_lab.settings import Settings
from load_lab.stack.engine import Engine, require_processes
from load_lab.stack.exclusive import exclusive_use

_OWN_PERCENTILES = {f"k6's p{share}" for share in SHARES}
# Time for the server, the floor, k6's start, and the readback.
_AROUND_SECONDS = 8


def run(engine: Engine, names: list[str], *, quick: bool, generators: int = 1) -> dict[str, Any]:
    """Measure the cells next to the running stack, store the document, and return it.

    Raises:
        UsageError: a cell is unknown, or the engine is not native.
        LabError: the stack failed.
        Interrupted: the user pressed Ctrl-C.
    """
    cells = select_cells(names, quick=quick, generators=generators)
    require_processes(engine, "calibrate", "pins its server and starves k6")
    with exclusive_use(engine) as stack:
        folder = project().results / f"calibrate-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        head = _head(engine, stack.base, quick=quick)
        documents, noises = list[dict[str, Any]](), list[tuple[str, Noise]]()
        for document, noise in _measure_cells(engine, stack.base, cells, folder):
            documents.append(document)
            noises += noise
            # After each cell, so that an interruption loses no measurement.
            result = _store(folder, head, documents, noises)
    return result


def _store(
    folder: Path, head: dict[str, Any], cells: list[dict[str, Any]], noises: list[tuple[str, Noise]]
) -> dict[str, Any]:
    """Store the document so far, and return it."""
    path = folder / "result.json"
    folder.mkdir(parents=True, exist_ok=True)
    warnings = [*head["warnings"], *unsteady(noises)]
    files = {"result": relative(path)}
    document = {
        **head,
        "warnings": warnings,
        "instrument_ms": instrument_error(cells),
        "cells": cells,
        "files": files,
    }
    write_json(path, document)
    return document


def instrument_error(cells: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return what the lab itself adds to each percentile of the response time, in ms: the mean and
    the most of all runs of known servers. It is a property of the instrument, whatever is allowed.
    """
    added: dict[str, list[float]] = {}
    for check in (check for cell in cells for check in cell["checks"]):
        if check["what"] in _OWN_PERCENTILES and isinstance(check["found"], int | float):
            added.setdefault(check["what"], []).append(check["found"] - check["expected"])
    return {
        what.removeprefix("k6's "): {"mean": round(fmean(ms), 2), "most": round(max(ms), 2)}
        for what, ms in added.items()
    }


def exit_code(document: dict[str, Any]) -> int:
    """Return 0 if every check held, 1 if one was missed, and 3 if the machine was too noisy to
    judge one.
    """
    outcomes = {check["outcome"] for cell in document["cells"] for check in cell["checks"]}
    return 1 if "missed" in outcomes else 3 if "void" in outcomes else 0


def _head(engine: Engine, settings: Settings, *, quick: bool) -> dict[str, Any]:
    warnings = preflight.warnings(settings)
    for warning in warnings:
        note(f"Warning: {warning}.")
    return {
        "schema_version": SCHEMA_VERSION,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "host": host(settings, engine.name),
        "versions": engine.versions(),
        "warnings": warnings,
    }


def _measure_cells(
    engine: Engine, settings: Settings, cells: list[Cell], folder: Path
) -> Iterator[tuple[dict[str, Any], list[tuple[str, Noise]]]]:
    """Yield each cell's document, and the noise of its runs."""
    expected = sum(cell.repeats * (cell.seconds + _AROUND_SECONDS) for cell in cells)
    with Progress(expected) as progress:
        for cell in cells:
            try:
                runs = list(_runs(engine, settings, cell, folder, progress))
                noises = [(cell.name, measurement.noise) for measurement in runs]
                yield cell_document(cell, runs, compare(cell, runs)), noises
            except Interrupted:
                raise
            except LabError as error:
                failure = Check("the run", "measured", str(error))
                yield cell_document(cell, [], [failure]), []


def _runs(
    engine: Engine, settings: Settings, cell: Cell, folder: Path, progress: Progress
) -> Iterator[Measurement]:
    for number in range(1, cell.repeats + 1):
        repeat = f" {number}/{cell.repeats}" if cell.repeats > 1 else ""
        progress.begin(f"{cell.name}{repeat}: {cell.what}", cell.seconds + _AROUND_SECONDS)
        yield _measure_quietest(engine, settings, cell, folder / f"{cell.name}-{number}")


def _measure_quietest(engine: Engine, settings: Settings, cell: Cell, folder: Path) -> Measurement:
    """Return one run: if the cell allows several tries, the first quiet one or the quietest. Their
    results do not affect the choice.
    """
    runs: list[Measurement] = []
    while not runs or (runs[-1].noise.void_reason and len(runs) < cell.tries):
        if runs:
            note(f"Warning: {runs[-1].noise.void_reason}. {cell.name} is measured again.")
        suffix = f"-again-{len(runs)}" if runs else ""
        runs.append(measure(engine, settings, cell, folder.with_name(folder.name + suffix)))
    quietest = min(runs, key=lambda measurement: measurement.noise.lost_share)
    return replace(quietest, tries=len(runs))


def cell_document(cell: Cell, runs: list[Measurement], checks: list[Check]) -> dict[str, Any]:
    """Return a cell as it is stored and displayed."""
    return {
        "cell": cell.name,
        "what": cell.what,
        "server": str(cell.service_time),
        "load": {name: value for name, value in asdict(cell).items() if name in _LOAD and value},
        "runs": [
            _run_document(measurement, uses_timer=cell.service_time.uses_timer)
            for measurement in runs
        ],
        "checks": [
            {**asdict(check), "off": check.deviation, "outcome": check.outcome} for check in checks
        ],
    }


_LOAD = ("profile", "seconds", "rate", "vus", "max_vus", "starved", "generators")


def _run_document(measurement: Measurement, *, uses_timer: bool) -> dict[str, Any]:
    reference = measurement.reference
    return {
        "figures": without_series(measurement.result.document()),
        "server": {
            "requests": reference.requests,
            "cut_off": reference.cut_off,
            "rate": round(reference.rate, 3),
            "mean_ms": round(reference.mean_ms, 4),
            "late_p50_ms": round(reference.late_ms(50), 4) if uses_timer else None,
            "late_p99_ms": round(reference.late_ms(99), 4) if uses_timer else None,
            "floor_ms": round(measurement.floor_ms, 4),
            "work_ms": round(reference.work_ms, 4),
        },
        "tries": measurement.tries,
        "noise": asdict(measurement.noise),
    }
