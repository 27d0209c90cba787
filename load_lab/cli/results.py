"""The commands about what is stored: they list, show, report and export, and measure nothing.

Each command imports what it needs when it runs: `lab --help` reads this module, not the reports.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from load_lab import options
from load_lab.errors import UsageError
from load_lab.options import Json, print_result
from load_lab.paths import project

if TYPE_CHECKING:
    from load_lab.results.store import StoredRun
    from load_lab.run.single_run import SingleRun


CatalogKind = Literal["profiles", "scenarios", "experiments", "presets", "targets", "runs"]


def list_(
    what: Annotated[CatalogKind | None, typer.Argument(help="Default: all but the runs.")] = None,
    as_json: Json = False,
) -> None:
    """List profiles, scenarios, experiments, presets, targets, runs."""
    from load_lab.cli import listing

    kinds = [what] if what else [kind for kind in get_args(CatalogKind) if kind != "runs"]
    print_result({kind: listing.entries(kind) for kind in kinds}, as_json, listing.tables)


def show(name: options.Run, export: options.Export = None, as_json: Json = False) -> None:
    """Print the result of a stored run again."""
    from load_lab.experiments import wording
    from load_lab.experiments.cli import stored_report
    from load_lab.results.store import find_run
    from load_lab.run import wording as single_run

    run = find_run(name)
    if export:
        _export(run, *export)
    if run.kind == "run":
        single = _single_run(run)
        print_result(single.document(), as_json, lambda _: single_run.run(single))
    elif run.kind == "experiment":
        print_result(stored_report(run.name), as_json, wording.report)
    else:
        _print_suite(run, as_json)


def _print_suite(run: "StoredRun", as_json: bool) -> None:
    """Print the result of a suite. Its document has no schema: only its own suite reads it."""
    from rich.errors import ConsoleError

    from load_lab.cli import stored_results as output

    try:
        print_result(run.document(), as_json, lambda document: output.suite(run.kind, document))
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, ConsoleError) as e:
        raise run.damaged(f"it lacks {e}" if isinstance(e, KeyError) else str(e)) from None


def report(
    name: options.NewestRun = None,
    export: options.Export = None,
    open_page: options.OpenPage = False,
    as_json: Json = False,
) -> None:
    """Write a report of a stored run: page, Markdown, charts."""
    from load_lab.experiments.cli import report_experiment
    from load_lab.experiments.run_folder import find_store, is_experiment
    from load_lab.results.store import StoredRun, find_run

    if name is None or is_experiment(name):
        store = find_store(name)
        run = StoredRun(store.run, "experiment", store.header_file)
        files = report_experiment(store, as_json)
    else:
        run = find_run(name)
        files = _report_run(run, as_json)
    if export:
        _export(run, *export)
    if open_page:
        typer.launch(str(project().folder / files["html"]))


def _report_run(run: "StoredRun", as_json: bool) -> dict[str, str]:
    from load_lab.compare.page import add_page
    from load_lab.compare.wording import comparison
    from load_lab.run import wording as output
    from load_lab.run.page import write_run_page

    if run.kind == "compare":
        try:
            document = add_page(run.document())
        except (LookupError, TypeError, ValueError, OSError) as error:
            raise run.damaged(f"it lacks {error}") from None
        print_result(document, as_json, comparison)
        files: dict[str, str] = document["files"]
        return files
    if run.kind != "run":
        raise UsageError(
            f"{run.name} is a result of `lab {run.kind}`, which has no page. "
            f"See: lab show {run.name}"
        )
    single = _single_run(run)
    reported = replace(single, files=write_run_page(single))
    print_result(reported.document(), as_json, lambda _: output.run(reported))
    return reported.files


def _single_run(run: "StoredRun") -> "SingleRun":
    from load_lab.run.single_run import parse_single_run

    document = run.document()
    try:
        return parse_single_run(document)
    except ValueError as error:
        raise run.damaged(str(error).splitlines()[0]) from None


def _export(run: "StoredRun", form: options.ExportFormat, path: Path) -> None:
    from load_lab.console import note
    from load_lab.experiments.run_folder import find_store
    from load_lab.results.export import result_row, write_export

    if run.kind == "run":
        rows = [result_row(run.name, _single_run(run).result)]
    elif run.kind == "experiment":
        cells = find_store(run.name).cells()
        rows = [
            result_row(cell.name, cell.result, repeat=cell.repeat, state=cell.state)
            for cell in cells
        ]
    else:
        raise UsageError(
            f"--export knows runs of `lab k6` and `lab run`; {run.name} is of `lab {run.kind}`. "
            f"Its whole document: lab show {run.name} --json"
        )
    write_export(rows, form, path)
    note(f"Wrote {path}.")
