"""The command that measures a declared experiment.

It imports what it needs when it runs: `lab --help` reads this module, not the experiments'.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from lab.cli.options import (
    ExperimentName,
    Json,
    Quick,
    Repeats,
    YesLoad,
    current_engine,
    print_result,
)
from lab.errors import LabError, UsageError

if TYPE_CHECKING:
    from lab.experiments.store import Store


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
    yes_load: YesLoad = None,
    as_json: Json = False,
) -> None:
    """Measure an experiment cell by cell, and report it.

    After Ctrl-C, --resume measures what is left.
    """
    from lab.cli.output import experiments
    from lab.experiments import command
    from lab.settings import load_settings

    if resume and (quick or repeat or only or dry_run):
        raise UsageError("--resume takes no other option: a run goes on as it began.")
    if resume:
        _finish(name, *command.resume(current_engine(), name, yes_load), as_json)
        return
    plan = command.plan_of(
        name, only=only or [], repeats=repeat, quick=quick, allowed_host=yes_load
    )
    if dry_run:
        document = experiments.plan_document(plan, command.target_slowness(load_settings()))
        print_result(document, as_json, experiments.plan)
        return
    _finish(name, *command.start(current_engine(), plan), as_json)


def _finish(name: str, store: "Store", failures: list[str], as_json: bool) -> None:
    """Report what was measured first, whatever became of the other cells."""
    from lab.cli.results import report_experiment

    report_experiment(store, as_json)
    if failures:
        raise LabError(
            f"{len(failures)} cells failed:\n" + "\n".join(failures) + "\nThe others are measured. "
            f"Try these again: lab run {name} --resume"
        )
