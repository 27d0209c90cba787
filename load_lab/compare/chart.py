"""The chart of a comparison: the ratio of each block with the interval, and both distributions."""

from pathlib import Path
from typing import Any

import altair as alt

from load_lab.results.chart_style import (
    BLUE,
    CONFIG,
    GREY,
    ORANGE,
    chart_of,
    log_domain,
    log_scale,
    plain_axis,
    save,
    title_spec,
)

_WIDTH, _HEIGHT, _SIZE, _EXTENT = 760, 190, 90, 48
_COMPARED, _CONTROL = "B ÷ A", "A ÷ A (control)"


def draw(document: dict[str, Any], path: Path) -> Path:
    """Write the chart as `path`.svg and `path`.png; returns the PNG."""
    chart = alt.vconcat(_ratios(document), _distributions(document))
    a, b = document["a"]["name"], document["b"]["name"]
    lines = [
        document["headline"],
        f"{document['scenario']}, {document['how']}, {document['rate']:g} requests/s each, "
        f"{len(document['blocks'])} restarts",
    ]
    spec = chart.resolve_scale(color="independent").to_dict()
    layout = {
        "config": CONFIG,
        "padding": 14,
        "spacing": 14,
        "title": title_spec(f"B: {b}, against A: {a}", lines),
    }
    return save({**spec, **layout}, path)


def _ratios(document: dict[str, Any]) -> Any:
    rows = [
        {
            "x": block["number"],
            "y": block["ratio"],
            "what": _CONTROL if block["control"] or document["is_control"] else _COMPARED,
        }
        for block in document["blocks"]
        if block["ratio"]
    ]
    colours = alt.Scale(domain=[_COMPARED, _CONTROL], range=[BLUE, GREY])
    points = (
        chart_of(rows)
        .mark_point(filled=True, size=_SIZE, opacity=1)
        .encode(
            x=alt.X("x:O", axis=alt.Axis(title="block: a restart of both", labelAngle=0)),
            y=alt.Y(
                "y:Q",
                axis=plain_axis("CPU per request, B ÷ A", minExtent=_EXTENT),
                scale=alt.Scale(zero=False),
            ),
            color=alt.Color("what:N", scale=colours),
        )
    )
    one = chart_of([{"y": 1}]).mark_rule(color=GREY, strokeDash=[2, 3]).encode(y="y:Q")
    layers = [one, points]
    if ratio := document["ratios"]["cpu_ms"]:
        band = chart_of([ratio]).mark_rect(color=BLUE, opacity=0.15)
        layers.insert(0, band.encode(y="low:Q", y2="high:Q"))
        line = chart_of([ratio]).mark_rule(color=BLUE, strokeWidth=2)
        layers.append(line.encode(y="ratio:Q"))
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT)


def _distributions(document: dict[str, Any]) -> Any:
    names = [f"{side.upper()}: {document[side]['name']}" for side in "ab"]
    rows = [
        {"x": point["ms"], "y": 100 * point["share"], "what": name}
        for side, name in zip("ab", names, strict=True)
        for point in document["distributions"][side]
    ]
    domain = log_domain([row["x"] for row in rows])
    return (
        chart_of(rows)
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=alt.X("x:Q", axis=plain_axis("response time (ms)", domain), scale=log_scale(domain)),
            y=alt.Y("y:Q", axis=plain_axis("percentile", minExtent=_EXTENT)),
            color=alt.Color("what:N", scale=alt.Scale(domain=names, range=[GREY, ORANGE])),
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
