"""The chart of an overload: goodput and response time over time, of each variant."""

from pathlib import Path
from typing import Any

import altair as alt

from load_lab.results.chart_style import (
    CONFIG,
    GREEN,
    GREY,
    VERMILLION,
    chart_of,
    log_domain,
    log_scale,
    plain_axis,
    save,
    title_spec,
)

_COLOURS, _OFFERED = (GREEN, VERMILLION), "offered"
_WIDTH, _HEIGHT, _EXTENT = 760, 200, 48


def draw(document: dict[str, Any], path: Path) -> Path:
    """Write the chart as `path`.svg and `path`.png; returns the PNG."""
    arms = document["arms"]
    panels = alt.vconcat(_goodput(arms), _times(arms)).resolve_scale(color="shared")
    limit = document["limit"]
    name = f"{document['scenario']} at {arms[0]['rate']} requests/s, twice its capacity"
    lines = [
        f"capacity {limit.get('headline', limit['rate'])}; "
        f"overloaded from second {arms[0]['spike'][0]:.0f} to {arms[0]['spike'][1]:.0f}"
    ]
    layout = {"config": CONFIG, "padding": 14, "spacing": 14, "title": title_spec(name, lines)}
    return save({**panels.to_dict(), **layout}, path)


def _goodput(arms: list[dict[str, Any]]) -> Any:
    rows = [
        {"x": w["end"], "y": w["goodput"], "what": arm["name"]}
        for arm in arms
        for w in arm["windows"]
    ]
    rows += [{"x": w["end"], "y": w["offered"], "what": _OFFERED} for w in arms[0]["windows"]]
    axis = plain_axis("goodput (answers/s)", minExtent=_EXTENT)
    return _panel(arms, rows, alt.Y("y:Q", axis=axis, scale=alt.Scale(zero=True)), labelled=False)


def _times(arms: list[dict[str, Any]]) -> Any:
    rows = [
        {"x": w["end"], "y": w["p95_ms"], "what": arm["name"]}
        for arm in arms
        for w in arm["windows"]
        if w["p95_ms"]
    ]
    domain = log_domain([row["y"] for row in rows])
    axis = plain_axis("p95 of all answers (ms)", domain, minExtent=_EXTENT)
    return _panel(arms, rows, alt.Y("y:Q", axis=axis, scale=log_scale(domain)), labelled=True)


def _panel(
    arms: list[dict[str, Any]], rows: list[dict[str, Any]], y: alt.Y, *, labelled: bool
) -> Any:
    title = "seconds into the load, end of each window of 5 s" if labelled else ""
    x = alt.X("x:Q", axis=plain_axis(title, labels=labelled, ticks=labelled))
    names = [*(arm["name"] for arm in arms), _OFFERED]
    colours = alt.Scale(domain=names, range=[*_COLOURS[: len(arms)], GREY])
    legend = alt.Legend(symbolType="stroke", symbolSize=500)
    lines = chart_of(rows).mark_line(strokeWidth=2, clip=True)
    return lines.encode(
        x=x, y=y, color=alt.Color("what:N", scale=colours, legend=legend)
    ).properties(width=_WIDTH, height=_HEIGHT)
