"""`lab explain`: what limited a stored run, and what is missing to say it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.analysis.bottleneck.reading import expected_capacity, known_limits
from lab.analysis.provenance import write_json
from lab.analysis.result import SCHEMA_VERSION, Result
from lab.errors import UsageError
from lab.experiments.store import Store
from lab.report.results import StoredRun, find_run
from lab.settings import Settings, known_settings
from lab.stack.engine import Engine
from lab.suites.capacity.command import search_result
from lab.suites.proof.run import prove
from lab.suites.single_run import parse_single_run
from lab.targets.reference.app import ReferenceApp

# The first format with signals.
_SINCE = 13


@dataclass(frozen=True)
class _Explained:
    """A stored load, in `folder`. `target` is the name of the app that it loaded."""

    result: Result
    settings: Settings
    folder: Path
    target: str
    schema_version: int = SCHEMA_VERSION

    @property
    def is_reference(self) -> bool:
        return self.target == ReferenceApp.name


def explain(name: str) -> dict[str, Any]:
    """Return the diagnosis of a load: of `lab k6`, of `lab capacity`, or of an experiment's cell
    (RUN/CELL). `why` says why there is none.

    Raises:
        UsageError: there is no such load.
    """
    load = _find(name)
    result, found = load.result, load.result.bottleneck
    expected = expected_capacity(result, load.settings) if result.outcome == "held" else None
    return {
        "testid": result.testid,
        "verdict": result.verdict,
        "broke_at": result.broke_at,
        "bottleneck": found.model_dump(mode="json") if found else None,
        "why": "" if found else _why_not(load),
        "expected_capacity": expected,
        "unseen": result.unseen_signals,
    }


def proof_of(engine: Engine, name: str) -> dict[str, Any]:
    """Prove the cause of a load by an intervention, and store the proof with it.

    Raises:
        UsageError: it has no cause, or one that can't be changed here.
    """
    load = _find(name)
    if not load.is_reference:
        raise UsageError(
            f"{name} loaded {load.target or 'another app'}: `lab` can change only the hotel API's "
            "stack. To verify the cause, give that part more, and measure again."
        )
    folder = load.folder / "proof"
    proof = prove(engine, load.result, load.settings, folder)
    write_json(folder / "proof.json", proof)
    return proof


def _find(name: str) -> _Explained:
    run_name, _, cell = name.partition("/")
    run = find_run(run_name)
    if run.kind == "experiment":
        return _cell(Store(run.path.parent), cell)
    if run.kind not in ("run", "capacity") or cell:
        raise UsageError(f"{name} is no run of `lab k6` or `lab capacity`. Those: lab list runs")
    document = run.document()
    try:
        return _single(run, document) if run.kind == "run" else _search(run, document)
    except (KeyError, ValueError) as error:
        raise run.damaged(str(error)) from None


def _single(run: StoredRun, document: dict[str, Any]) -> _Explained:
    single_run = parse_single_run(document)
    return _Explained(
        single_run.result,
        single_run.settings,
        run.path.parent,
        _target(single_run.result, single_run.settings),
        document["schema_version"],
    )


def _search(run: StoredRun, document: dict[str, Any]) -> _Explained:
    settings = known_settings(document["settings"])
    return _Explained(search_result(document), settings, run.path.parent, document["target"])


def _cell(store: Store, name: str) -> _Explained:
    """Return a cell's load: the first repeat that has a cause."""
    measured = [(run, run.result) for run in store.cells() if run.result]
    found = [(run, result) for run, result in measured if run.name == name]
    if not found:
        names = ", ".join(dict.fromkeys(f"{store.run}/{run.name}" for run, _ in measured))
        raise UsageError(
            f"{store.run} has no measured cell {name or 'without a name'}. Measured: "
            f"{names or 'none'}."
        )
    run, result = max(found, key=lambda each: each[1].bottleneck is not None)
    file = f"*-{run.name.replace('/', '+')}.r{run.repeat}"
    declared = store.header().get("target")
    return _Explained(
        result,
        known_settings(run.settings),
        next((store.folder / "cells").glob(file)),
        declared["name"] if declared else "" if run.legacy else ReferenceApp.name,
    )


def _target(result: Result, settings: Settings) -> str:
    if result.target is None:
        return ""
    return ReferenceApp.name if known_limits(result.target.url, settings) else result.target.name


def _why_not(load: _Explained) -> str:
    if load.schema_version < _SINCE:
        return "An older lab measured it: nothing was seen of the target's parts. Measure it again."
    if load.result.outcome == "unrecorded":
        return "Prometheus lacks a part of the run, so it is not known when it broke."
    return "No limit was exceeded for long enough, so nothing limited it."
