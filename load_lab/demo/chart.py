"""The chart of the demo: response time over the arrival rate, a curve for each variant."""

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
    log_domain,
    log_scale,
    plain_axis,
    save,
    title_spec,
)
from load_lab.results.formatting import rate

_COLOURS = (VERMILLION, BLUE, GREEN)
_WIDTH, _HEIGHT = 760, 320


def draw(document: dict[str, Any], path: Path) -> Path:
    """Write the chart as `path`.svg and `path`.png; returns the PNG."""
    rungs, limit = document["rungs"], document["bounds"]["p95_ms"]
    rows = [
        {"x": window["offered"], "y": window["p95_ms"], "what": rung["name"]}
        for rung in rungs
        for window in rung["windows"]
        if window["p95_ms"] and window["offered"]
    ]
    x_domain = log_domain([row["x"] for row in rows])
    y_domain = log_domain([*(row["y"] for row in rows), limit])
    x_axis = plain_axis("offered arrival rate, requests per second", x_domain)
    y_axis = plain_axis("response time, p95 (ms)", y_domain)
    x = alt.X("x:Q", axis=x_axis, scale=log_scale(x_domain))
    y = alt.Y("y:Q", axis=y_axis, scale=log_scale(y_domain))
    names = [rung["name"] for rung in rungs]
    colours = alt.Color(
        "what:N",
        scale=alt.Scale(domain=names, range=list(_COLOURS)),
        legend=alt.Legend(symbolType="stroke", symbolSize=500),
    )
    lines = chart_of(rows).mark_line(strokeWidth=2.5, clip=True).encode(x=x, y=y, color=colours)
    chart = alt.layer(lines, *_limit_line(limit, x_domain), *_sustained_rates(rungs, colours))
    spec = chart.properties(width=_WIDTH, height=_HEIGHT).to_dict()
    sentences = [f"{rung['sentence']}" for rung in rungs]
    layout = {
        "config": CONFIG,
        "padding": 14,
        "title": title_spec("One page, three ways", sentences),
    }
    return save({**spec, **layout}, path)


def _limit_line(limit: float, domain: tuple[float, float]) -> list[Any]:
    row = {"x": domain[0], "y": limit, "text": f"limit {limit:,.0f} ms"}
    base = chart_of([row]).encode(y="y:Q")
    label = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3).encode(
        x="x:Q", text="text:N"
    )
    return [base.mark_rule(color=GREY, strokeDash=[4, 3]), label]


def _sustained_rates(rungs: list[dict[str, Any]], colours: alt.Color) -> list[Any]:
    """Return the highest sustained rate of each variant, as a vertical line."""
    rows = [
        {
            "x": rung["rate"],
            "what": rung["name"],
            "text": f"{'≥ ' if rung['at_least'] else ''}{rate(rung['rate'])}/s",
        }
        for rung in rungs
    ]
    base = chart_of(rows).encode(x="x:Q", color=colours)
    label = base.mark_text(align="right", baseline="top", dx=-5, fontSize=12).encode(
        y=alt.value(3), text="text:N"
    )
    return [base.mark_rule(strokeWidth=1.5), label]
