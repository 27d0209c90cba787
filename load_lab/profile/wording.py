"""A profile for the terminal."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from load_lab.profile.ranking import shown

# Of the samples, from which shares are visibly off.
_MUCH_WAITING = 0.1


def profile(document: dict[str, Any]) -> RenderableType:
    """Return the CPU cost of a request, its hottest functions and costliest statements; the last
    line has the first of both.
    """
    files = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, path in document["files"].items():
        files.add_row(name, path)
    return Group(
        *_why(document.get("after")),
        f"[bold]{escape(_cost(document))}[/bold]",
        *_functions(document),
        *_waiting(document),
        *_statements(document),
        files,
        # Of results before there were statements.
        *map(escape, filter(None, [document.get("headline")])),
    )


def _why(after: dict[str, Any] | None) -> Iterator[str]:
    if after:
        yield escape(
            f"{after['operation']} of {after['testid']}, alone at {after['rate']:g}/s: "
            f"{after['why']}"
        )


def _cost(document: dict[str, Any]) -> str:
    mean = document.get("mean_ms")
    took = "" if mean is None else f", which takes {mean} ms"
    idle = document.get("idle_samples")
    more = f", {idle} more of workers without a request" if idle else ""
    return (
        f"{document.get('only') or document['scenario']}: {document['cpu_ms_per_request']} ms of "
        f"CPU per request{took} ({document['requests']} in {document['seconds']} s, "
        f"{document['failed']} failed; {document['samples']} samples{more})"
    )


def _functions(document: dict[str, Any]) -> Iterator[RenderableType]:
    if not document["hottest"]:
        yield f"Functions: {document['samples']} samples are too few; the server waited."
    else:
        yield _table("The ten hottest functions, share of the samples", document["hottest"])
        # Older profiles have no `own`.
        if document.get("own"):
            yield _table("Functions of the app's own files", document["own"])
        elif "own" in document:
            yield "None of the functions is in a file of the folder where the server runs."


def _table(title: str, functions: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("self %", "with callees %"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("function", overflow="fold")
    for function in functions:
        name = f"{escape(function['function'])} [dim]{escape(function['where'])}[/dim]"
        table.add_row(
            f"{function['self_percent']:.1f}", f"{function['cumulative_percent']:.1f}", name
        )
    return table


def _waiting(document: dict[str, Any]) -> Iterator[str]:
    """Yield how much of what py-spy took for work was none: by the kernel, CPU time is less."""
    sampled = document["samples"] / document["samples_per_second"]
    waiting = 1 - document["cpu_seconds"] / sampled if sampled else 0.0
    if document["hottest"] and waiting > _MUCH_WAITING:
        yield (
            f"{waiting:.0%} of the samples are not CPU time: the server was waiting for a CPU, or "
            "being woken. Workers that share a CPU wait in all functions alike: that changes no "
            "share. Waiting for Postgres on the same CPU counts for what sent the statement: all "
            f"other shares are then too small by up to {waiting:.0%}."
        )


def _statements(document: dict[str, Any]) -> Iterator[RenderableType]:
    if why := document.get("no_statements"):
        yield escape(f"Statements: none, {why}.")
    if not document.get("statements"):
        return
    table = Table(title="The statements that cost most, per request", title_justify="left")
    for name in ("calls", "ms", "% of its time"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("statement", overflow="fold")
    for each in document["statements"]:
        values = (f"{each['calls_per_request']:g}", f"{each['ms_per_request']:g}")
        table.add_row(*values, f"{each['percent']:.1f}", escape(shown(each["statement"])))
    yield table
