"""The demo's table, and the next commands."""

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from load_lab.results.formatting import milliseconds, rate, times
from load_lab.results.limit import Limit
from load_lab.settings import LOOPBACK


def demo(document: dict[str, Any]) -> RenderableType:
    """Return one row per variant, the files, and the next commands."""
    return Group(
        "",
        _rungs(document),
        "Sustained: the highest rate with a p95 below "
        f"{document['bounds']['p95_ms']:,.0f} ms. Gain: compared with the row above.",
        f"Chart: {escape(document['files']['picture'])}",
        "",
        _next(document["settings"]),
    )


def _rungs(document: dict[str, Any]) -> Table:
    table = Table(title="One page, three ways", title_justify="left", box=None, padding=(0, 2))
    table.add_column("variant")
    for column in ("sustained", "p95 there", "gain"):
        table.add_column(column, justify="right")
    table.add_column("limited by")
    for rung in document["rungs"]:
        at_least = "at least " if rung["at_least"] else ""
        table.add_row(
            escape(rung["name"]),
            f"{at_least}{rate(rung['rate'])}/s",
            f"{milliseconds(rung['p95_ms'])} ms",
            times(rung["times"]) if rung["times"] else "",
            Limit(rung["limited_by"]).text,
        )
    return table


def _next(settings: dict[str, Any]) -> Table:
    table = Table(title="Next", title_justify="left", show_header=False, box=None, padding=(0, 2))
    table.add_row("the API", f"http://{LOOPBACK}:{settings['LAB_HTTP_PORT']}/api/docs/")
    table.add_row("metrics", f"http://{LOOPBACK}:{settings['LAB_PROMETHEUS_PORT']}/graph")
    table.add_row("the services and settings", "lab status")
    table.add_row("change a setting", "lab set LAB_DETAIL=fast")
    table.add_row("load one route", "lab k6 breakpoint --scenario list --rate 100 --duration 1m")
    table.add_row("stop the stack", "lab down")
    return table
