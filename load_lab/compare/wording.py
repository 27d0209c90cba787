"""A comparison for the terminal, and in Markdown for a pull request."""

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from load_lab.compare.page import COLUMNS, facts_of, rows_of
from load_lab.results.page import plain


def comparison(document: dict[str, Any]) -> RenderableType:
    """Return the verdict, then the ratios, then what they rest on."""
    table = Table(title_justify="left")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in ("", "verdict") else "right")
    for row in rows_of(document):
        table.add_row(*map(escape, row))
    below = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in facts_of(document):
        below.add_row(name, escape(value))
    for name, path in document["files"].items():
        below.add_row(name, escape(path))
    return Group(f"[bold]{escape(document['headline'])}[/bold]", table, below)


def markdown(document: dict[str, Any]) -> str:
    """Return the comparison as Markdown, such as a pull request's comment; of stored capacities
    there is only the verdict.
    """
    lines = [f"**{plain(document['headline'])}**"]
    if "sides" in document:
        lines += [
            "",
            f"| {' | '.join(COLUMNS)} |",
            "|---|--:|--:|--:|--:|---|",
            *(f"| {' | '.join(map(plain, row))} |" for row in rows_of(document)),
            "",
            *(f"- {name}: {plain(value)}" for name, value in facts_of(document)),
        ]
    return "\n".join(lines) + "\n"
