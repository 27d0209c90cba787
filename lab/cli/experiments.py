"""The commands that measure a declared experiment, and report what is stored of one."""

from typing import Annotated

import typer

from lab.cli.options import Json, answer, engine_here
from lab.cli.output import experiments
from lab.console import step
from lab.errors import LabError, UsageError
from lab.experiments import command
from lab.experiments.store import Store, find_store


def run(
    name: Annotated[str, typer.Argument(help="An experiment, or the path of a .toml file.")],
    dry_run: Annotated[bool, typer.Option(help="Print the cells and the time they need.")] = False,
    quick: Annotated[
        bool, typer.Option(help="Shorter loads, fewer cells: a look, no figures.")
    ] = False,
    again: Annotated[bool, typer.Option("--resume", help="Go on with the newest run.")] = False,
    repeat: Annotated[int | None, typer.Option(min=1, max=100, help="Repeats.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Cells, such as 'detail/naive/*'.")] = None,
    as_json: Json = False,
) -> None:
    """Measure every cell of an experiment, then report. It can be interrupted and resumed."""
    if again and (quick or repeat or only or dry_run):
        raise UsageError("--resume goes on as the run began; it takes no other option.")
    if again:
        _finish(name, *command.resume(engine_here(), name), as_json)
        return
    plan = command.plan_of(name, only=only or [], repeats=repeat, quick=quick)
    if dry_run:
        answer(experiments.plan_document(plan), as_json, experiments.plan)
        return
    _finish(name, *command.start(engine_here(), plan), as_json)


def report(
    name: Annotated[str | None, typer.Argument(help="A run, or an experiment's newest.")] = None,
    as_json: Json = False,
) -> None:
    """Turn a stored run into a page, Markdown and pictures; measures nothing."""
    _report(find_store(name), as_json)


def _finish(name: str, store: Store, failures: list[str], as_json: bool) -> None:
    """The report first: the cells that were measured count, whatever became of the others."""
    _report(store, as_json)
    if failures:
        raise LabError(
            f"{len(failures)} cells failed:\n" + "\n".join(failures) + "\nThe others are measured. "
            f"Try these again: lab run {name} --resume"
        )


def _report(store: Store, as_json: bool) -> None:
    # Altair takes half a second to import, which every other command would pay.
    from lab.report.document import report_of

    with step("Drawing the report"):
        document = report_of(store)
    answer(document, as_json, experiments.report)
