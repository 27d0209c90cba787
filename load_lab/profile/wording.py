"""A profile for the terminal."""

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table


def profile(document: dict[str, Any]) -> RenderableType:
    """Return the CPU cost of a request, then its hottest functions."""
    per_request = document["cpu_ms_per_request"]
    cost = (
        f"{document['scenario']}: {per_request} ms of CPU per request ({document['requests']} in "
        f"{document['seconds']} s, {document['failed']} failed; {document['samples']} samples)"
    )
    table = Table(title="The ten hottest functions", title_justify="left")
    for name in ("self %", "with callees %"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("function", overflow="fold")
    for function in document["hottest"]:
        name = f"{escape(function['function'])} [dim]{function['where']}[/dim]"
        table.add_row(
            f"{function['self_percent']:.1f}", f"{function['cumulative_percent']:.1f}", name
        )
    files = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, path in document["files"].items():
        files.add_row(name, path)
    return Group(f"[bold]{escape(cost)}[/bold]", table, files)
