"""The steps of `lab run` around its cells: stack, checks, folder and clean-up."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any

from lab_settings.types import cpu_numbers

from load_lab.console import note, step
from load_lab.errors import Interrupted
from load_lab.experiments.cell import Bench, StackBench, load_of
from load_lab.experiments.legacy import arms
from load_lab.experiments.legacy_cell import CombinedBench, LegacyBench
from load_lab.experiments.plan import Plan
from load_lab.experiments.resume import check_same_machine, find_unfinished
from load_lab.experiments.run_folder import Store, new_store
from load_lab.experiments.runner import close, header, run_plan
from load_lab.experiments.target_cell import TargetBench
from load_lab.load.k6 import check
from load_lab.machine import preflight
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.noise import slowness
from load_lab.metrics.windows import Bounds
from load_lab.paths import project
from load_lab.results.provenance import host
from load_lab.settings import Settings, update_live_settings
from load_lab.stack import database
from load_lab.stack.engine import Engine, settings_of
from load_lab.stack.exclusive import ExclusiveUse, exclusive_use
from load_lab.targets.app_process import put_data_back, running
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.file import Variation
from load_lab.targets.reference.app import at_entry
from load_lab.targets.reference.cells import describe
from load_lab.targets.variants import vary

BOUNDS = Bounds()


def start(engine: Engine, plan: Plan) -> tuple[Store, list[str]]:
    """Measure a new run. Return its store, and a line for each failed cell.

    Raises:
        LabError: the machine is not suitable, or the stack failed.
        Interrupted: the user pressed Ctrl-C.
    """
    store = new_store(plan.name)
    with exclusive_use(engine, reference_app=plan.target is None) as stack:
        warnings = preflight.warnings(stack.base)
        machine = _describe_machine(engine, stack.base, plan)
        _check_loads(engine, plan)
        store.write_header(header(plan, store, BOUNDS, machine, warnings))
        return store, _measure(engine, plan, store, stack)


def resume(
    engine: Engine, name: str, target: str | None = None, allowed_host: str | None = None
) -> tuple[Store, list[str]]:
    """Continue the newest run of `name`, of a target if one is named, that has unmeasured cells.

    Raises:
        UsageError: there is none, or its machine, programs or file differ.
    """
    store, plan = find_unfinished(name, target, allowed_host)
    with exclusive_use(engine, reference_app=plan.target is None) as stack:
        document = store.header()
        warnings = [*document["warnings"], *preflight.warnings(stack.base)]
        check_same_machine(store.run, document, _describe_machine(engine, stack.base, plan))
        state = {"state": "running", "ended": None, "warnings": list(dict.fromkeys(warnings))}
        store.write_header(document | state)
        return store, _measure(engine, plan, store, stack)


def _measure(engine: Engine, plan: Plan, store: Store, stack: ExclusiveUse) -> list[str]:
    for warning in store.header()["warnings"]:
        note(f"Warning: {warning}.")
    for line in plan.notes:
        note(f"{line}.")
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
            f"Interrupted. What was measured is in {folder}. Go on with: {plan.command} --resume"
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
    shared = {name: str(value) for name, value in plan.experiment.settings.items()}
    stack.base = update_live_settings(stack.base, shared)
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


def _describe_machine(engine: Engine, settings: Settings, plan: Plan) -> dict[str, Any]:
    machine = {
        "engine": engine.name,
        "host": host(settings, engine.name),
        "limits": engine.limits(),
    }
    if plan.target is None:
        return machine | describe(engine, settings)
    file = plan.target.path.read_text(encoding="utf-8")
    versions = engine.versions() | dict(plan.versions)
    return machine | {"versions": versions, "target": {"name": plan.target.name, "file": file}}


def _check_loads(engine: Engine, plan: Plan) -> None:
    """Let k6 check each load, before a run of hours."""
    loads = {cell.workload.model_dump_json(): cell.workload for cell, _ in plan.todo}
    with _first_variant(engine, plan) as target, step("Checking the loads"):
        for workload in loads.values():
            check(engine, target or at_entry(engine, workload.entry), load_of(workload))


def _first_variant(engine: Engine, plan: Plan) -> AbstractContextManager[DeclaredTarget | None]:
    """Return the target as the first cell has it: its token may come from itself."""
    if plan.target is None:
        return nullcontext()
    first, _ = plan.todo[0]
    return running(vary(plan.target, first.target or Variation()), settings_of(engine))
