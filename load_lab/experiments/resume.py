"""What `lab run NAME --resume` goes on with: the newest run that has cells to measure."""

from dataclasses import replace
from typing import Any

from load_lab.console import note
from load_lab.errors import LabError, UsageError
from load_lab.experiments import files
from load_lab.experiments.plan import Plan, command_of, plan_of
from load_lab.experiments.run_folder import Store, stores


def find_unfinished(
    name_or_path: str, target: str | None, allowed_host: str | None
) -> tuple[Store, Plan]:
    """Return the newest run, of that target if one is named, that has cells to measure, and its
    plan.

    Raises:
        UsageError: there is none, or the experiment's file has changed.
    """
    name, text = files.definition(name_or_path, target)
    again = command_of(name_or_path, target)
    for store in stores(name):
        document = _unfinished_header(store)
        if document is None or target not in (None, document.get("target", {}).get("name")):
            continue
        if document["definition"] != text:
            raise UsageError(
                f"{name}.toml has changed since {store.run} began: its cells would not "
                f"be one experiment. Start a new run: {again}"
            )
        return store, _remake_plan(name_or_path, document, allowed_host, target)
    raise UsageError(f"There is no unfinished run of {name}. Start one: {again}")


def _unfinished_header(store: Store) -> dict[str, Any] | None:
    """Return the header of a run with unmeasured cells; None if it has none, or is unreadable."""
    try:
        document, measured = store.header(), store.measured()
    except LabError as error:
        note(f"Skipped: {error}")
        return None
    planned = {(entry["name"], entry["repeat"]) for entry in document["plan"]}
    return document if planned - measured else None


def _remake_plan(
    name_or_path: str, document: dict[str, Any], allowed_host: str | None, target: str | None = None
) -> Plan:
    plan = plan_of(
        name_or_path,
        target_name=target,
        only=list(dict.fromkeys(entry["name"] for entry in document["plan"])),
        repeats=document["repeats"],
        quick=document["quick"],
        allowed_host=allowed_host,
    )
    # As it began: which cells were to be repeated is in its plan.
    cells_by_name = {cell.name: cell for cell, _ in plan.todo}
    todo = [(cells_by_name[entry["name"]], entry["repeat"]) for entry in document["plan"]]
    return replace(plan, todo=todo)


def check_same_machine(run: str, document: dict[str, Any], machine: dict[str, Any]) -> None:
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
