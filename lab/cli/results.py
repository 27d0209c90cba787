"""The commands about what is stored: they list, show, report and export, and measure nothing.

Each command imports what it needs when it runs: `lab --help` reads this module, not the reports.
"""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab.cli import options
from lab.cli.options import Json, print_result
from lab.errors import UsageError
from lab.paths import ROOT

if TYPE_CHECKING:
    from lab.experiments.store import Store
    from lab.report.results import StoredRun
    from lab.suites.single_run import SingleRun


class CatalogKind(StrEnum):
    """What `lab list` can list."""

    PROFILES = "profiles"
    SCENARIOS = "scenarios"
    EXPERIMENTS = "experiments"
    PRESETS = "presets"
    TARGETS = "targets"
    RUNS = "runs"


def list_(
    what: Annotated[CatalogKind | None, typer.Argument(help="Default: all but the runs.")] = None,
    as_json: Json = False,
) -> None:
    """List profiles, scenarios, experiments, presets, targets, runs."""
    from lab.cli.output import results as output
    from lab.report.catalog import catalog

    kinds = [what] if what else [kind for kind in CatalogKind if kind is not CatalogKind.RUNS]
    print_result({kind.value: catalog(kind) for kind in kinds}, as_json, output.catalog)


def show(name: options.Run, export: options.Export = None, as_json: Json = False) -> None:
    """Print the result of a stored run again."""
    from lab.cli.output import experiments
    from lab.cli.output import run as single_run
    from lab.report.results import find_run

    run = find_run(name)
    if export:
        _export(run, *export)
    if run.kind == "run":
        single = _single_run(run)
        print_result(single.document(), as_json, lambda _: single_run.run(single))
    elif run.kind == "experiment":
        print_result(_experiment(run.name), as_json, experiments.report)
    else:
        _print_suite(run, as_json)


def explain(
    name: options.RunOrCell,
    prove: Annotated[
        bool, typer.Option("--prove", help="Change the named part, and measure: 3 minutes.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what limited a stored run, with the evidence.

    --prove gives the named part more, or takes some away, and compares the throughput.
    """
    from lab.cli.output import bottleneck as output
    from lab.report.explanation import explain as explain_run
    from lab.report.explanation import proof_of

    document = explain_run(name)
    if prove:
        document["proof"] = proof_of(options.current_engine(), name)
    print_result(document, as_json, output.explanation)


def _print_suite(run: "StoredRun", as_json: bool) -> None:
    """Print the result of a suite. Its document has no schema: only its own suite reads it."""
    from rich.errors import ConsoleError

    from lab.cli.output import results as output

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
    from lab.experiments.store import find_store, is_experiment
    from lab.report.results import StoredRun, find_run

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
        typer.launch(str(ROOT / files["html"]))


def report_experiment(store: "Store", as_json: bool) -> dict[str, Any]:
    """Write and print the report of an experiment's run; returns its files."""
    from lab.cli.output import experiments
    from lab.console import step
    from lab.report.document import report_of

    with step("Drawing the report"):
        document = report_of(store)
    print_result(document, as_json, experiments.report)
    files: dict[str, Any] = document["files"]
    return files


def _report_run(run: "StoredRun", as_json: bool) -> dict[str, str]:
    from lab.cli.output import run as output
    from lab.cli.output.comparison import comparison
    from lab.report.comparison_page import add_page
    from lab.report.run_page import write_run_page

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
    from lab.suites.single_run import parse_single_run

    document = run.document()
    try:
        return parse_single_run(document)
    except ValueError as error:
        raise run.damaged(str(error).splitlines()[0]) from None


def _experiment(name: str) -> dict[str, Any]:
    from lab.experiments.claims import evaluate
    from lab.experiments.store import find_store
    from lab.report.document import report_document

    store = find_store(name)
    header, cells = store.header(), store.cells()
    return report_document(header, cells, evaluate(header["claims"], cells), {})


def _export(run: "StoredRun", form: options.ExportFormat, path: Path) -> None:
    from lab.console import note
    from lab.experiments.store import find_store
    from lab.report.export import result_row, write_export

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
