"""`lab explain`: what limited a stored run, and what is missing to say it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from load_lab.capacity.measurement import search_result
from load_lab.diagnosis import causes
from load_lab.diagnosis.prediction import Prediction
from load_lab.diagnosis.reading import expected_capacity
from load_lab.errors import LabError, UsageError
from load_lab.experiments.run_folder import Store
from load_lab.load.chosen_target import find_measured
from load_lab.profile.after import FILE
from load_lab.results.limit import Limit
from load_lab.results.provenance import read_json, relative
from load_lab.results.result import Result
from load_lab.results.store import StoredRun, find_run
from load_lab.run.single_run import parse_single_run
from load_lab.settings import Settings, load_settings, stored_settings
from load_lab.stack.engine import Engine
from load_lab.targets.file import Variation
from load_lab.targets.subject import Subject

# Those that use least CPU are left out.
_SHOWN_SERVICES = 4


@dataclass(frozen=True)
class StoredLoad:
    """A stored load: its `name`, as typed, the stack's settings, and its folder. A cell with a
    target has no settings, but a variant of it.
    """

    name: str
    result: Result
    settings: Settings | None
    folder: Path
    variation: Variation = field(default_factory=Variation)


def explanation(load: StoredLoad) -> dict[str, Any]:
    """Return the diagnosis of a load; `why` says why there is none."""
    result, found = load.result, load.result.bottleneck
    held = result.outcome == "held"
    settings = load.settings or load_settings()
    expected = expected_capacity(result, settings) if held else Prediction()
    return {
        "testid": result.testid,
        "verdict": result.verdict,
        "broke_at": result.broke_at,
        "bottleneck": found.model_dump(mode="json") if found else None,
        "why": "" if found else _why_not(result),
        "expected_capacity": expected.rate,
        "not_predicted": expected.why,
        "unseen": result.unseen_signals,
        "profile": _profile_after(load.folder / FILE),
    }


def _profile_after(path: Path) -> dict[str, Any] | None:
    """Return the answer of `lab profile --after` with this run, if there is one."""
    if not path.is_file():
        return None
    try:
        document = read_json(path)
        return {name: document[name] for name in ("profile", "operation", "headline")}
    except (KeyError, ValueError) as error:
        raise LabError(
            f"{relative(path)} is damaged ({error}). Remove it, or write it again: lab profile "
            f"--after {path.parent.name}"
        ) from None


def subject_of(engine: Engine, load: StoredLoad) -> Subject:
    """Return what a load was sent to.

    Raises:
        UsageError: it can't be started as it was.
    """
    target, scenario = load.result.target, load.result.scenario
    if target is None:
        raise UsageError(f"{load.name} does not say what it loaded. Measure it again.")
    return find_measured(engine, target.name, target.url, scenario, load.settings, load.variation)


def find_load(name: str) -> StoredLoad:
    """Return a load of `lab k6`, of `lab capacity`, or of an experiment's cell (RUN/CELL).

    Raises:
        UsageError: there is no such load.
    """
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


def _single(run: StoredRun, document: dict[str, Any]) -> StoredLoad:
    single_run = parse_single_run(document)
    return StoredLoad(run.name, single_run.result, single_run.settings, run.path.parent)


def _search(run: StoredRun, document: dict[str, Any]) -> StoredLoad:
    if document["outcome"] in ("interrupted", "failed"):
        reason = document["headline"].rstrip(".")
        raise UsageError(f"{run.name} has {reason}. Search it again.")
    settings = stored_settings(document["settings"], run.name)
    return StoredLoad(run.name, search_result(document), settings, run.path.parent)


def _cell(store: Store, name: str) -> StoredLoad:
    """Return a cell's load: the first repeat that has a cause."""
    measured = [(run, run.result) for run in store.cells() if run.result]
    found = [(run, result) for run, result in measured if run.name == name]
    if not found:
        names = ", ".join(dict.fromkeys(f"{store.run}/{run.name}" for run, _ in measured))
        problem = f"has no measured cell {name}" if name else "is an experiment: name a cell"
        raise UsageError(f"{store.run} {problem}. Measured: {names or 'none'}.")
    run, result = max(found, key=lambda each: _has_cause(each[1]))
    folder = store.folder / "proofs" / f"{run.name.replace('/', '+')}.r{run.repeat}"
    settings = stored_settings(run.settings, store.run) if run.settings else None
    return StoredLoad(f"{store.run}/{name}", result, settings, folder, run.variant or Variation())


def _cpu_text(result: Result) -> str:
    """Return what is known of a run without its series."""
    used = sorted(result.services_cpu.items(), key=lambda item: -item[1])[:_SHOWN_SERVICES]
    cores = ", ".join(f"{name} {cores:.2f}" for name, cores in used)
    return f"CPUs used on average: {cores}." if used else "Its CPU use is not known either."


def _has_cause(result: Result) -> bool:
    return bool(result.bottleneck and result.bottleneck.cause)


def _why_not(result: Result) -> str:
    if result.outcome == "unrecorded":
        return (
            "Prometheus lacks a part of the run, so it is not known when it broke. "
            f"{_cpu_text(result)}"
        )
    if result.outcome == "interrupted":
        return "The run was interrupted before a limit was exceeded for long enough."
    if result.limited_by is Limit.GENERATOR:
        return f"The load generator was the limit, not the target: {causes.GENERATOR.remedy}."
    if result.limited_by is Limit.OTHERS:
        return f"Other programs took the CPUs: {causes.OTHERS.remedy}."
    if result.capacity and not result.capacity.rate:
        return f"{result.verdict}: {causes.ONE_REQUEST.remedy}."
    if result.outcome == "failed":
        return f"The run failed: {result.verdict}"
    if result.break_point or result.capacity:
        return "Nothing was seen of the target then. Measure it again."
    return "No limit was exceeded for long enough, so nothing limited it."
