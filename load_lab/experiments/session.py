"""The steps of `lab run` around its cells: stack, checks, folder and clean-up."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from lab_settings.types import cpu_numbers

from load_lab.console import note, step
from load_lab.errors import Interrupted, LabError, UsageError
from load_lab.experiments import files
from load_lab.experiments.cell import Bench, StackBench, load_of
from load_lab.experiments.legacy import arms
from load_lab.experiments.legacy_cell import CombinedBench, LegacyBench
from load_lab.experiments.run_folder import Store, new_store, stores
from load_lab.experiments.runner import Plan, close, header, make_plan, run_plan
from load_lab.experiments.schema import Experiment
from load_lab.experiments.target_cell import TargetBench
from load_lab.load.k6 import check
from load_lab.machine import preflight
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.noise import slowness
from load_lab.metrics.windows import Bounds
from load_lab.paths import project
from load_lab.results.provenance import host
from load_lab.settings import Settings, load_settings, update_live_settings
from load_lab.stack import database
from load_lab.stack.engine import Engine, settings_of
from load_lab.stack.exclusive import ExclusiveUse, exclusive_use
from load_lab.stack.latency import postgres_auth
from load_lab.stack.reported import query_backend
from load_lab.targets.app_process import put_data_back, running
from load_lab.targets.declared import DeclaredTarget, find_allowed
from load_lab.targets.file import Variation
from load_lab.targets.reference.app import ReferenceApp
from load_lab.targets.variants import vary

BOUNDS = Bounds()


def plan_of(
    name_or_path: str,
    *,
    only: list[str],
    repeats: int | None,
    quick: bool,
    allowed_host: str | None = None,
) -> Plan:
    """Return the plan of a new run.

    Raises:
        UsageError: the experiment, a pattern, a setting or a claim is invalid, or its target is
            public and not on `allowed_host`.
    """
    name, text = files.definition(name_or_path)
    experiment = files.parse(name, text)
    target = find_allowed(experiment.target, allowed_host) if experiment.target else None
    cells = files.checked_cells(name, experiment, load_settings(), target)
    return make_plan(
        name, text, experiment, cells, only=only, repeats=repeats, quick=quick, target=target
    )


def start(engine: Engine, plan: Plan) -> tuple[Store, list[str]]:
    """Measure a new run. Return its store, and a line for each failed cell.

    Raises:
        LabError: the machine is not suitable, or the stack failed.
        Interrupted: the user pressed Ctrl-C.
    """
    store = new_store(plan.name)
    with exclusive_use(engine, reference_app=plan.target is None) as stack:
        warnings = preflight.warnings(stack.base)
        machine = _describe_machine(engine, stack.base, plan.target)
        _check_loads(engine, plan)
        store.write_header(header(plan, store, BOUNDS, machine, warnings))
        return store, _measure(engine, plan, store, stack)


def resume(engine: Engine, name: str, allowed_host: str | None = None) -> tuple[Store, list[str]]:
    """Continue the newest run of `name` that has unmeasured cells.

    Raises:
        UsageError: there is none, or its machine, programs or file differ.
    """
    store, plan = _find_unfinished(name, allowed_host)
    with exclusive_use(engine, reference_app=plan.target is None) as stack:
        document = store.header()
        warnings = [*document["warnings"], *preflight.warnings(stack.base)]
        _check_same_machine(store.run, document, _describe_machine(engine, stack.base, plan.target))
        state = {"state": "running", "ended": None, "warnings": list(dict.fromkeys(warnings))}
        store.write_header(document | state)
        return store, _measure(engine, plan, store, stack)


def _measure(engine: Engine, plan: Plan, store: Store, stack: ExclusiveUse) -> list[str]:
    for warning in store.header()["warnings"]:
        note(f"Warning: {warning}.")
    folder = store.folder.relative_to(project().results.parent)
    note(f"Results go to {folder}.")
    state = "interrupted"
    try:
        unavailable = _find_unavailable(engine, plan, stack.base)
        slowness_now = target_slowness(stack.base)
        with _bench(engine, plan, stack) as bench:
            failures = run_plan(plan, store, bench, unavailable, slowness_now)
        state = "incomplete" if failures or unavailable else "finished"
    except (Interrupted, KeyboardInterrupt):
        raise Interrupted(
            f"Interrupted. What was measured is in {folder}. "
            f"Go on with: lab run {plan.name} --resume"
        ) from None
    finally:
        close(store, state)
    return failures


def _bench(engine: Engine, plan: Plan, stack: ExclusiveUse) -> AbstractContextManager[Bench]:
    if plan.target:
        return _target_bench(engine, plan.target)
    return _reference_bench(engine, plan, stack)


@contextmanager
def _reference_bench(engine: Engine, plan: Plan, stack: ExclusiveUse) -> Iterator[Bench]:
    stack.base = _shared_settings(stack.base, plan.experiment)
    engine.apply(stack.base)
    database.prepare_template(engine, stack.base)
    stack.prepared = True
    with closing(LegacyBench(engine, stack.base, BOUNDS)) as legacy:
        yield CombinedBench(StackBench(engine, stack.base, BOUNDS), legacy)


@contextmanager
def _target_bench(engine: Engine, target: DeclaredTarget) -> Iterator[Bench]:
    """Yield the bench; afterwards the target is stopped, and its data are back."""
    with closing(TargetBench(engine, target, BOUNDS)) as bench:
        yield bench
    put_data_back(target)


def target_slowness(settings: Settings) -> float:
    """Return how many times as slow as an idle reference machine the target's CPUs are now."""
    return slowness(cpu_numbers(choose_cpus(settings).target))


def _find_unavailable(engine: Engine, plan: Plan, base: Settings) -> dict[str, str]:
    """Return the old stacks of the plan that can't run here, with the reasons, and report them."""
    needed = [cell.legacy.stack or "" for cell, _ in plan.todo if cell.legacy]
    reasons = arms.missing_stacks(engine, base, needed)
    for name, reason in reasons.items():
        note(f"Not measured: {needed.count(name)} cells of {name}. {reason}")
    return reasons


def _shared_settings(base: Settings, experiment: Experiment) -> Settings:
    """Return the settings shared by all cells, including whether the workbench is enabled."""
    return update_live_settings(
        base, {name: str(value) for name, value in experiment.settings.items()}
    )


def _find_unfinished(name_or_path: str, allowed_host: str | None) -> tuple[Store, Plan]:
    name, text = files.definition(name_or_path)
    experiment: Experiment = files.parse(name, text)
    for store in stores(name):
        document = _unfinished_header(store)
        if document is None:
            continue
        if document["definition"] != text:
            raise UsageError(
                f"{name}.toml has changed since {store.run} began: its cells would not "
                f"be one experiment. Start a new run: lab run {name_or_path}"
            )
        return store, _remake_plan(name, text, experiment, document, allowed_host)
    raise UsageError(f"There is no unfinished run of {name}. Start one: lab run {name_or_path}")


def _unfinished_header(store: Store) -> dict[str, Any] | None:
    """Return the header of a run with unmeasured cells; None if it has none, or is unreadable."""
    try:
        document, cells = store.header(), store.cells()
    except LabError as error:
        note(f"Skipped: {error}")
        return None
    results = {(run.name, run.repeat) for run in cells if run.state == "measured"}
    remaining = [
        entry for entry in document["plan"] if (entry["name"], entry["repeat"]) not in results
    ]
    return document if remaining else None


def _remake_plan(
    name: str,
    text: str,
    experiment: Experiment,
    document: dict[str, Any],
    allowed_host: str | None,
) -> Plan:
    target = find_allowed(experiment.target, allowed_host) if experiment.target else None
    cells = files.checked_cells(name, experiment, load_settings(), target)
    names = list(dict.fromkeys(entry["name"] for entry in document["plan"]))
    plan = make_plan(
        name,
        text,
        experiment,
        cells,
        only=names,
        repeats=document["repeats"],
        quick=document["quick"],
        target=target,
    )
    # As it began: which cells were to be repeated is in its plan.
    cells_by_name = {cell.name: cell for cell, _ in plan.todo}
    todo = [(cells_by_name[entry["name"]], entry["repeat"]) for entry in document["plan"]]
    return replace(plan, todo=todo)


def _describe_machine(
    engine: Engine, settings: Settings, target: DeclaredTarget | None
) -> dict[str, Any]:
    machine = {
        "engine": engine.name,
        "host": host(settings, engine.name),
        "limits": engine.limits(),
    }
    versions = engine.versions()
    if target:
        file = target.path.read_text(encoding="utf-8")
        return machine | {"versions": versions, "target": {"name": target.name, "file": file}}
    return machine | _describe_reference_app(engine, settings, versions)


def _describe_reference_app(
    engine: Engine, settings: Settings, versions: dict[str, str]
) -> dict[str, Any]:
    status = query_backend(settings, engine.token())
    if status["debug"]:
        raise LabError("The backend runs with DEBUG on, so results would be void. Unset DEBUG.")
    return {
        "data": {n: v for n, v in settings.as_env().items() if n.startswith("LAB_DATA_")},
        "versions": versions | status["versions"],
        "postgres_auth": postgres_auth(settings, engine.token()),
    }


def _check_loads(engine: Engine, plan: Plan) -> None:
    """Let k6 check each load, before a run of hours."""
    loads = {cell.workload.model_dump_json(): cell.workload for cell, _ in plan.todo}
    with _first_variant(engine, plan) as target, step("Checking the loads"):
        for workload in loads.values():
            check(engine, target or ReferenceApp(engine, workload.entry), load_of(workload))


def _first_variant(engine: Engine, plan: Plan) -> AbstractContextManager[DeclaredTarget | None]:
    """Return the target as the first cell has it: its token may come from itself."""
    if plan.target is None:
        return nullcontext()
    first, _ = plan.todo[0]
    return running(vary(plan.target, first.target or Variation()), settings_of(engine))


def _check_same_machine(run: str, document: dict[str, Any], machine: dict[str, Any]) -> None:
    """Check that the machine, engine, programs, commit and data are those of the first cells.

    Raises:
        UsageError: one of them differs, so the cells are not comparable.
    """
    old, new = _comparable(document), _comparable(machine)
    changed = {name: (old[name], new[name]) for name in new if old[name] != new[name]}
    if changed:
        differences = "; ".join(
            f"{name} was {before}, is {after}" for name, (before, after) in changed.items()
        )
        raise UsageError(
            f"{run} can't be resumed: {differences}. Their results would not be comparable. "
            "Start a new run."
        )


def _comparable(machine: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that must be the same for all cells of a run."""
    names = ("cpus", "memory_bytes", "system", "target_cpus", "load_cpus", "commit")
    host_facts = {name: machine["host"].get(name) for name in names}
    others = ("engine", "versions", "limits", "postgres_auth", "data", "target")
    return host_facts | {name: machine.get(name) for name in others}
