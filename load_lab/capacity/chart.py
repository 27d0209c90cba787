"""The chart of a search for a capacity: the holds in their order, and the interval they leave."""

from pathlib import Path
from typing import Any

import altair as alt

from load_lab.results.chart_style import (
    BLUE,
    CONFIG,
    GREEN,
    GREY,
    VERMILLION,
    chart_of,
    plain_axis,
    save,
    title_spec,
)

_PASSED, _FAILED, _VOID = "passed", "failed", "void: the machine disturbed it"
_WIDTH, _HEIGHT, _SIZE = 760, 260, 110
_MARGIN = 0.1


def draw(document: dict[str, Any], path: Path) -> Path:
    """Write the chart as `path`.svg and `path`.png; returns the PNG."""
    chart = alt.layer(*_interval(document), _holds(document))
    slo = document["slo"]
    lines = [
        f"p95 at most {slo['p95_ms']} ms, errors at most {slo['errors']:.1%}; requests evenly "
        f"spaced; {document['seconds']:.0f} s"
    ]
    name = f"{document['target']}, {document['scenario']}: {document['headline']}"
    layout = {"config": CONFIG, "padding": 14, "title": title_spec(name, lines)}
    return save({**chart.properties(width=_WIDTH, height=_HEIGHT).to_dict(), **layout}, path)


def _holds(document: dict[str, Any]) -> Any:
    rows = [
        {"x": number, "y": hold["rate"], "what": _outcome(hold)}
        for number, hold in enumerate(document["holds"], 1)
    ]
    colours = alt.Scale(domain=[_PASSED, _FAILED, _VOID], range=[GREEN, VERMILLION, GREY])
    shapes = alt.Scale(domain=[_PASSED, _FAILED, _VOID], range=["circle", "cross", "diamond"])
    rates = [row["y"] for row in rows]
    domain = [min(rates) * (1 - _MARGIN), max(rates) * (1 + _MARGIN)]
    x = alt.X("x:O", axis=alt.Axis(title="hold, in the order of the search", labelAngle=0))
    y = alt.Y(
        "y:Q",
        axis=plain_axis("constant arrival rate, per second"),
        scale=alt.Scale(domain=domain, nice=False),
    )
    points = chart_of(rows).mark_point(filled=True, size=_SIZE, opacity=1)
    return points.encode(
        x=x,
        y=y,
        color=alt.Color("what:N", scale=colours),
        shape=alt.Shape("what:N", scale=shapes),
    )


def _outcome(hold: dict[str, Any]) -> str:
    if hold["passed"]:
        return _PASSED
    return _VOID if hold["disturbed"] else _FAILED


def _interval(document: dict[str, Any]) -> list[Any]:
    """Return the band of the interval, and the line of the capacity."""
    if not document["rate"] or document["high"] is None:
        return []
    rows = [{"low": document["low"], "high": document["high"], "rate": document["rate"]}]
    band = chart_of(rows).mark_rect(color=BLUE, opacity=0.15).encode(y="low:Q", y2="high:Q")
    line = chart_of(rows).mark_rule(color=BLUE, strokeWidth=2).encode(y="rate:Q")
    return [band, line]
