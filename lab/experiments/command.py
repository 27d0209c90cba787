"""The steps of `lab run` around its cells: stack, checks, folder and clean-up."""

from contextlib import closing
from typing import Any

from lab.analysis.provenance import host
from lab.analysis.windows import Bounds
from lab.console import note, step
from lab.errors import Interrupted, LabError, UsageError
from lab.experiments import files
from lab.experiments.cell import StackBench, load_of
from lab.experiments.old_stack_cell import CombinedBench, LegacyBench
from lab.experiments.old_stacks import arms
from lab.experiments.runner import Plan, close, header, make_plan, run_plan
from lab.experiments.schema import Experiment
from lab.experiments.store import Store, new_store, stores
from lab.host import preflight
from lab.host.cpus import choose_cpus, expand
from lab.host.noise import slowness
from lab.load.k6 import check
from lab.paths import RESULTS
from lab.settings import Settings, load_settings, update_live_settings
from lab.stack import database
from lab.stack.engine import Engine
from lab.stack.exclusive import ExclusiveUse, exclusive_use
from lab.stack.inspect import query_backend
from lab.stack.latency import postgres_auth
from lab.targets.reference import ReferenceApp

BOUNDS = Bounds()


def plan_of(name_or_path: str, *, only: list[str], repeats: int | None, quick: bool) -> Plan:
    """Return the plan of a new run.

    Raises:
        UsageError: the experiment, a pattern, a setting or a claim is invalid.
    """
    name, text = files.definition(name_or_path)
    experiment = files.parse(name, text)
    cells = files.checked_cells(name, experiment, load_settings())
    return make_plan(name, text, experiment, cells, only=only, repeats=repeats, quick=quick)


def start(engine: Engine, plan: Plan) -> tuple[Store, list[str]]:
    """Measure a new run. Return its store, and a line for each failed cell.

    Raises:
        LabError: the machine is not suitable, or the stack failed.
        Interrupted: the user pressed Ctrl-C.
    """
    store = new_store(plan.name)
    with exclusive_use(engine) as stack:
        warnings = preflight.warnings(stack.base)
        machine = _describe_machine(engine, stack.base)
        _check_loads(engine, plan)
        store.write_header(header(plan, store, BOUNDS, machine, warnings))
        return store, _measure(engine, plan, store, stack)


def resume(engine: Engine, name: str) -> tuple[Store, list[str]]:
    """Continue the newest run of `name` that has unmeasured cells.

    Raises:
        UsageError: there is none, or its machine, programs or file differ.
    """
    store, plan = _find_unfinished(name)
    with exclusive_use(engine) as stack:
        document = store.header()
        warnings = [*document["warnings"], *preflight.warnings(stack.base)]
        _check_same_machine(store.run, document, _describe_machine(engine, stack.base))
        state = {"state": "running", "ended": None, "warnings": list(dict.fromkeys(warnings))}
        store.write_header(document | state)
        return store, _measure(engine, plan, store, stack)


def _measure(engine: Engine, plan: Plan, store: Store, stack: ExclusiveUse) -> list[str]:
    for warning in store.header()["warnings"]:
        note(f"Warning: {warning}.")
    folder = store.folder.relative_to(RESULTS.parent)
    note(f"Results go to {folder}.")
    state = "interrupted"
    try:
        unavailable = _find_unavailable(engine, plan, stack.base)
        stack.base = _shared_settings(stack.base, plan.experiment)
        engine.apply(stack.base)
        database.prepare_template(engine, stack.base)
        stack.prepared = True
        with closing(LegacyBench(engine, stack.base, BOUNDS)) as legacy:
            bench = CombinedBench(StackBench(engine, stack.base, BOUNDS), legacy)
            failures = run_plan(plan, store, bench, unavailable, target_slowness(stack.base))
        state = "incomplete" if failures or unavailable else "finished"
    except (Interrupted, KeyboardInterrupt):
        raise Interrupted(
            f"Interrupted. What was measured is in {folder}. "
            f"Go on with: lab run {plan.name} --resume"
        ) from None
    finally:
        close(store, state)
    return failures


def target_slowness(settings: Settings) -> float:
    """Return how many times as slow as an idle reference machine the target's CPUs are now."""
    return slowness(expand(choose_cpus(settings).target))


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


def _find_unfinished(name_or_path: str) -> tuple[Store, Plan]:
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
        return store, _remake_plan(name, text, experiment, document)
    raise UsageError(f"No run of {name} has cells left. Start a new one: lab run {name_or_path}")


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


def _remake_plan(name: str, text: str, experiment: Experiment, document: dict[str, Any]) -> Plan:
    cells = files.checked_cells(name, experiment, load_settings())
    names = list(dict.fromkeys(entry["name"] for entry in document["plan"]))
    return make_plan(
        name,
        text,
        experiment,
        cells,
        only=names,
        repeats=document["repeats"],
        quick=document["quick"],
    )


def _describe_machine(engine: Engine, settings: Settings) -> dict[str, Any]:
    status = query_backend(settings, engine.token())
    if status["debug"]:
        raise LabError("The backend runs with DEBUG on, so results would be void. Unset DEBUG.")
    versions = engine.versions() | status["versions"]
    return {
        "engine": engine.name,
        "host": host(settings, engine.name),
        "limits": engine.limits(),
        "data": {n: v for n, v in settings.as_env().items() if n.startswith("LAB_DATA_")},
        "versions": versions,
        "postgres_auth": postgres_auth(settings, engine.token()),
    }


def _check_loads(engine: Engine, plan: Plan) -> None:
    """Let k6 check each load, before a run of hours."""
    loads = {cell.workload.model_dump_json(): cell.workload for cell, _ in plan.todo}
    with step("Checking the loads"):
        for workload in loads.values():
            check(engine, ReferenceApp(engine, workload.entry), load_of(workload))


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
    others = ("engine", "versions", "limits", "postgres_auth", "data")
    return host_facts | {name: machine.get(name) for name in others}
