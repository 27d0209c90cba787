"""`lab run`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from load_lab.errors import LabError, UsageError
from load_lab.options import (
    ExperimentName,
    Json,
    Quick,
    Repeats,
    Target,
    YesLoad,
    current_engine,
    print_result,
)

if TYPE_CHECKING:
    from load_lab.experiments.run_folder import Store


def run(
    name: ExperimentName,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the cells and their duration; run nothing.")
    ] = False,
    quick: Quick = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Measure what the newest run has left.")
    ] = False,
    repeat: Repeats = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Cells to measure: 'detail/naive/*'.")
    ] = None,
    target: Target = None,
    yes_load: YesLoad = None,
    as_json: Json = False,
) -> None:
    """Measure an experiment cell by cell, and report it.

    After Ctrl-C, --resume measures what is left.
    """
    from load_lab.experiments import session, wording
    from load_lab.experiments.plan import command_of, plan_of
    from load_lab.settings import load_settings

    if resume and (quick or repeat or only or dry_run):
        raise UsageError("--resume takes no other option but --target: a run goes on as it began.")
    command = command_of(name, target)
    if resume:
        _finish(command, *session.resume(current_engine(), name, target, yes_load), as_json)
        return
    plan = plan_of(
        name,
        target_name=target,
        only=only or [],
        repeats=repeat,
        quick=quick,
        allowed_host=yes_load,
    )
    if dry_run:
        document = wording.plan_document(plan, session.target_slowness(load_settings()))
        print_result(document, as_json, wording.plan)
        return
    _finish(command, *session.start(current_engine(), plan), as_json)


def _finish(command: str, store: "Store", failures: list[str], as_json: bool) -> None:
    """Report what was measured first, whatever became of the other cells."""
    report_experiment(store, as_json)
    if failures:
        raise LabError(
            f"{len(failures)} cells failed:\n" + "\n".join(failures) + "\nThe others are measured. "
            f"Try these again: {command} --resume"
        )


def report_experiment(store: "Store", as_json: bool) -> dict[str, Any]:
    """Write and print the report of an experiment's run; returns its files."""
    from load_lab.console import step
    from load_lab.experiments import wording
    from load_lab.experiments.report.writing import report_of

    with step("Drawing the report"):
        document = report_of(store)
    print_result(document, as_json, wording.report)
    files: dict[str, Any] = document["files"]
    return files


def stored_report(name: str) -> dict[str, Any]:
    """Return the report of a run as a document; no file is written."""
    from load_lab.experiments.claims import evaluate
    from load_lab.experiments.report.writing import report_document
    from load_lab.experiments.run_folder import find_store

    store = find_store(name)
    header, cells = store.header(), store.cells()
    return report_document(header, cells, evaluate(header["claims"], cells), {})
