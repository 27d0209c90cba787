"""Catalogs and stored results for the terminal."""

from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from lab.cli.output import demo, endurance, run
from lab.cli.output.bench import bench_table
from lab.cli.output.calibration import calibration
from lab.cli.output.capacity import capacity
from lab.cli.output.comparison import comparison
from lab.report.results import Kind

_SUITES: dict[Kind, Callable[[dict[str, Any]], RenderableType]] = {
    "bench": bench_table,
    "bench-growth": bench_table,
    "calibrate": calibration,
    "capacity": capacity,
    "compare": comparison,
    "demo": demo.demo,
    "overload": endurance.overload,
    "soak": endurance.soak,
    "profile": run.profile,
}


def catalog(document: dict[str, list[dict[str, str]]]) -> RenderableType:
    """Return one table per kind."""
    return Group(*(_table(kind, entries) for kind, entries in document.items()))


def _table(kind: str, entries: list[dict[str, str]]) -> RenderableType:
    if not entries:
        return f"There are no {kind} yet."
    table = Table(
        title=kind, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0)
    )
    for entry in entries:
        table.add_row(*(escape(value) for value in entry.values()))
    return Group(table, "")


def suite(kind: Kind, document: dict[str, Any]) -> RenderableType:
    """Return the result of a suite in the same form as after its run."""
    return _SUITES[kind](document)
