"""How a layer looks: the same colour and dash in every picture, whichever layers are in it."""

from typing import Any

import altair as alt

from lab.charts.style import GREY, colour, dash
from lab.report.blocks import Key
from lab.report.model import Report

Rows = list[dict[str, Any]]


def layer_colour(report: Report, rows: Rows) -> alt.Color:
    """The colour of each layer; the legend names those that have rows."""
    names = list(report.rows.positions)
    scale = alt.Scale(domain=names, range=[colour(i) for i in range(len(names))])
    return alt.Color("layer:N", scale=scale, legend=_legend(report, rows))


def layer_dash(report: Report, rows: Rows) -> alt.StrokeDash:
    """The dash of each layer."""
    names = list(report.rows.positions)
    scale = alt.Scale(domain=names, range=[list(dash(i)) or [1, 0] for i in range(len(names))])
    return alt.StrokeDash("layer:N", scale=scale, legend=_legend(report, rows))


def keys(report: Report, rows: Rows) -> list[Key]:
    """The page's own legend: the lines and marks that have rows."""
    used = _used(report, rows)
    lines = [
        Key(name, colour(i), "line", dash(i))
        for i, name in enumerate(report.rows.positions)
        if name in used
    ]
    marks = {row.get("mark") for row in rows}
    broke = [Key("broke", GREY, "circle")] if "filled" in marks else []
    gave_way = Key("generator or VU cap gave way", GREY, "circle", open=True)
    return [*lines, *broke, *([gave_way] if "open" in marks else [])]


def _legend(report: Report, rows: Rows) -> alt.Legend:
    values = _used(report, rows)
    return alt.Legend(symbolType="stroke", symbolSize=500, title=None, values=values)


def _used(report: Report, rows: Rows) -> list[str]:
    found = {row["layer"] for row in rows}
    return [name for name in report.rows.positions if name and name in found]
