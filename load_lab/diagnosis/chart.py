"""The chart of a bottleneck: where one request spends its time, and what fills up over the load."""

import textwrap
from pathlib import Path
from typing import Any

import altair as alt

from load_lab.diagnosis.split import TITLES
from load_lab.results.bottleneck import Diagnosis
from load_lab.results.chart_style import (
    BLUE,
    CONFIG,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    chart_of,
    plain_axis,
    save,
    title_spec,
)
from load_lab.results.formatting import milliseconds
from load_lab.results.result import Result

_WIDTH, _HEIGHT, _STEP, _EXTENT = 760, 200, 24, 48
# A place where a request spends less is not drawn, in ms.
_LEAST_MS = 0.05
_SHARES = {
    "target's CPUs": BLUE,
    "busiest process, of one CPU": PURPLE,
    "generator's CPUs": GREY,
}
_REQUESTS = {"in the server": GREEN, "not accepted": ORANGE}


def draw(result: Result, found: Diagnosis, path: Path) -> Path:
    """Write the chart as `path`.svg and `path`.png; returns the PNG."""
    panels = alt.vconcat(
        _split(found), _shares(result), _requests(result), spacing=24
    ).resolve_scale(color="independent")
    lines = [line for text in found.evidence for line in textwrap.wrap(text, 125)]
    layout = {"config": CONFIG, "padding": 14, "title": title_spec(found.headline, lines)}
    return save({**panels.to_dict(), **layout}, path)


def _split(found: Diagnosis) -> Any:
    rows = [
        {"place": TITLES.get(place, place), "ms": ms, "text": f"{milliseconds(ms)} ms"}
        for place, ms in sorted(found.split_ms.items(), key=lambda item: -item[1])
        if ms >= _LEAST_MS
    ]
    base = chart_of(rows).encode(
        x=alt.X("ms:Q", axis=plain_axis("time of one request in the server (ms)")),
        y=alt.Y("place:N", sort=None, title=None, axis=alt.Axis(minExtent=_EXTENT)),
    )
    texts = base.mark_text(align="left", dx=4).encode(text="text:N")
    bars = base.mark_bar(color=BLUE, height=0.6 * _STEP)
    return alt.layer(bars, texts).properties(width=_WIDTH, height=_STEP * max(len(rows), 1))


def _shares(result: Result) -> Any:
    started = _started(result)
    rows = [
        {"x": use.at - started, "y": 100 * share, "what": name}
        for use in result.cpu
        for name, share in (("target's CPUs", use.target), ("generator's CPUs", use.load))
    ]
    rows += [
        {"x": one.at - started, "y": 100 * one.busiest, "what": "busiest process, of one CPU"}
        for one in result.signals
    ]
    return _lines(result, rows, _SHARES, "busy (%)")


def _requests(result: Result) -> Any:
    started = _started(result)
    rows = [
        {"x": one.at - started, "y": value, "what": name}
        for one in result.signals
        for name, value in (("in the server", one.in_flight), ("not accepted", one.queued))
        if value is not None
    ]
    return _lines(result, rows, _REQUESTS, "requests", labelled=True)


def _lines(
    result: Result,
    rows: list[dict[str, Any]],
    colours: dict[str, str],
    title: str,
    *,
    labelled: bool = False,
) -> Any:
    end = result.windows[-1].end
    x = alt.X(
        "x:Q",
        axis=plain_axis("seconds into the load" if labelled else ""),
        scale=alt.Scale(domain=[0, end], nice=False),
    )
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    legend = alt.Legend(symbolType="stroke", symbolSize=500, orient="top", title=None)
    lines = (
        chart_of([row for row in rows if 0 <= row["x"] <= end])
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=x,
            y=alt.Y("y:Q", axis=plain_axis(title, minExtent=_EXTENT)),
            color=alt.Color("what:N", scale=scale, legend=legend),
        )
    )
    return alt.layer(lines, *_break(result)).properties(width=_WIDTH, height=_HEIGHT)


def _break(result: Result) -> list[Any]:
    if result.break_point is None:
        return []
    row = {"x": result.break_point.seconds_into_test}
    return [chart_of([row]).mark_rule(color=VERMILLION, strokeWidth=1.5).encode(x="x:Q")]


def _started(result: Result) -> float:
    return result.prometheus.start if result.prometheus else 0.0
