"""What `lab run` does around its cells: the stack, the folder, the clean-up, the report."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lab.breakpoint import Bounds
from lab.console import note, step
from lab.engine import Engine
from lab.errors import Interrupted, LabError, UsageError
from lab.experiment import load, preflight, reset
from lab.experiment.cell import StackBench
from lab.experiment.run import Plan, close, header, make_plan, run_plan
from lab.experiment.schema import Experiment
from lab.experiment.store import Store, new_store, stores
from lab.live import ask_backend
from lab.paths import RESULTS
from lab.results import host
from lab.settings import Settings, load_settings, on_site

BOUNDS = Bounds()


def plan_of(name: str, *, only: list[str], repeats: int | None, quick: bool) -> Plan:
    """The plan of a new run.

    Raises:
        UsageError: the experiment, a pattern, a setting or a claim is wrong.
    """
    text = load.definition(name)
    experiment = load.parse(name, text)
    cells = load.checked_cells(name, experiment, load_settings())
    return make_plan(name, text, experiment, cells, only=only, repeats=repeats, quick=quick)


def start(engine: Engine, plan: Plan) -> Store:
    """Measure a new run."""
    store = new_store(plan.name)
    with _stack(engine) as base:
        warnings = preflight.warnings(base)
        machine = _machine(engine, base)
        store.write_header(header(plan, store, BOUNDS, machine, warnings))
        for warning in warnings:
            note(f"Warning: {warning}.")
        _measure(engine, plan, store, base)
    return store


def resume(engine: Engine, name: str) -> Store:
    """Go on with the newest run of `name` that has cells left.

    Raises:
        UsageError: there is none, or it was begun elsewhere or of another file.
    """
    store, plan = _unfinished(name)
    with _stack(engine) as base:
        _check_same_machine(store, _machine(engine, base))
        store.write_header(store.header() | {"state": "running", "ended": None})
        _measure(engine, plan, store, base)
    return store


def _measure(engine: Engine, plan: Plan, store: Store, base: Settings) -> None:
    note(f"Results go to {store.folder.relative_to(RESULTS.parent)}.")
    try:
        run_plan(plan, store, StackBench(engine, base, BOUNDS))
    except Interrupted:
        close(store, "interrupted")
        raise Interrupted(
            f"Interrupted. What was measured is in {store.folder.relative_to(RESULTS.parent)}. "
            f"Go on with: lab run {plan.name} --resume"
        ) from None
    except LabError:
        close(store, "interrupted")
        raise
    close(store, "finished")


@contextmanager
def _stack(engine: Engine) -> Iterator[Settings]:
    """The running stack, started if need be; afterwards as it was, with fresh data."""
    with _alone():
        before = engine.settings()
        base = on_site(before) if before else load_settings()
        if before is None:
            engine.up(base)
        try:
            reset.prepare_template(engine, base)
            yield base
        finally:
            _leave(engine, before)


def _leave(engine: Engine, before: Settings | None) -> None:
    if engine.settings() is None:
        note("The stack is down: it was taken down meanwhile.")
        return
    try:
        with step("Leaving the stack as it was, with fresh data"):
            if before is None:
                engine.down()
                return
            engine.apply(before)
            reset.restore(engine)
            engine.empty_caches()
    except LabError as error:
        # What ended the run is the message that counts.
        note(f"The stack could not be left as it was: {error}")


@contextmanager
def _alone() -> Iterator[None]:
    """Two runs at once would measure each other."""
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / ".run.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError("Another `lab run` is under way. Wait for it, or stop it.") from None
        yield


def _unfinished(name: str) -> tuple[Store, Plan]:
    text = load.definition(name)
    experiment: Experiment = load.parse(name, text)
    for store in stores(name):
        head = store.header()
        done = {(c["name"], c["repeat"]) for c in store.cells() if c["state"] == "measured"}
        if all((each["name"], each["repeat"]) in done for each in head["plan"]):
            continue
        if head["definition"] != text:
            raise UsageError(
                f"experiments/{name}.toml has changed since {store.run} began: its cells would not "
                f"be one experiment. Start a new run: lab run {name}"
            )
        return store, _plan_again(name, text, experiment, head)
    raise UsageError(f"No run of {name} has cells left. Start a new one: lab run {name}")


def _plan_again(name: str, text: str, experiment: Experiment, head: dict[str, Any]) -> Plan:
    cells = load.checked_cells(name, experiment, load_settings())
    names = list(dict.fromkeys(each["name"] for each in head["plan"]))
    return make_plan(
        name, text, experiment, cells, only=names, repeats=head["repeats"], quick=head["quick"]
    )


def _machine(engine: Engine, settings: Settings) -> dict[str, Any]:
    said = ask_backend(settings, engine.token())
    if said["debug"]:
        raise LabError("The backend runs with DEBUG on: its figures would mean nothing.")
    versions = engine.versions() | said["versions"]
    return {
        "engine": engine.name,
        "host": host(settings, engine.name),
        "limits": engine.limits(),
        "versions": versions,
    }


def _check_same_machine(store: Store, machine: dict[str, Any]) -> None:
    """Cells of two machines or engines are not one experiment."""
    head = store.header()
    facts = ("cpus", "memory_bytes", "system", "target_cpus", "load_cpus")
    before, now = ({f: m["host"][f] for f in facts} for m in (head, machine))
    if (head["engine"], before) != (machine["engine"], now):
        raise UsageError(
            f"{store.run} was begun on {head['engine']}, {before}; this is {machine['engine']}, "
            f"{now}. Figures of both are not comparable. Start a new run."
        )
