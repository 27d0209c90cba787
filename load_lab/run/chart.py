"""The chart of an open-model run: response time, goodput and errors over the arrival rate."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt

from load_lab.metrics.windows import Bounds, Window
from load_lab.results.breakpoint import BreakPoint
from load_lab.results.chart_style import (
    BLUE,
    CONFIG,
    GREEN,
    GREY,
    PURPLE,
    VERMILLION,
    chart_of,
    log_domain,
    log_scale,
    plain_axis,
    save,
    title_spec,
)
from load_lab.results.formatting import rate
from load_lab.results.result import Result

# Each quantity has one style in all three panels; the legend lists them in this order.
_STYLES: dict[str, tuple[str, list[int]]] = {
    "p95": (BLUE, [1, 0]),
    "offered": (GREY, [6, 3]),
    "achieved": (PURPLE, [1, 0]),
    "goodput": (GREEN, [1, 0]),
    "errors": (VERMILLION, [1, 0]),
    "limit": (GREY, [2, 3]),
}
_WIDTH = 760  # in points, like the heights
_HEIGHT, _LOW_HEIGHT = 210, 100
_EXTENT = 48


@dataclass(frozen=True)
class _XAxis:
    """The x axis: the arrival rate if it only rises, else time."""

    rate: bool
    end: float

    def x(self, window: Window) -> float:
        return window.offered if self.rate else window.end

    def channel(self, *, labelled: bool) -> alt.X:
        """Return the x channel; only the lowest panel is labelled, since all share the axis."""
        title = "offered arrival rate, per second" if self.rate else "seconds into the load"
        axis = plain_axis(title if labelled else "", labels=labelled, ticks=labelled)
        return alt.X("x:Q", axis=axis, scale=alt.Scale(domain=[0, self.end], nice=False))


def draw(result: Result, bounds: Bounds, title: str, path: Path) -> Path:
    """Write the chart as `path`.svg and `path`.png; returns the PNG."""
    windows = result.windows
    rising = all(a.offered < b.offered for a, b in pairwise(windows))
    x_axis = _XAxis(rising, max(w.offered if rising else w.end for w in windows))
    panels = [
        _times(windows, bounds, x_axis),
        _rates(windows, x_axis),
        _errors(windows, bounds, x_axis),
    ]
    point = result.break_point
    chart = alt.vconcat(
        *[_with_break_line(panel, point, x_axis, i) for i, panel in enumerate(panels)]
    )
    # One legend for all panels, although no panel has all lines.
    spec = chart.resolve_scale(color="shared", strokeDash="shared").to_dict()
    name, _, settings = title.partition("; ")
    lines = [line for part in (settings, result.verdict) for line in textwrap.wrap(part, 125)]
    layout = {"config": CONFIG, "padding": 14, "spacing": 14, "title": title_spec(name, lines)}
    return save({**spec, **layout}, path)


def _times(windows: Sequence[Window], bounds: Bounds, x_axis: _XAxis) -> Any:
    rows = [_row(x_axis.x(w), w.p95_ms, "p95") for w in windows if w.p95_ms]
    rows += _limit_rows(x_axis, bounds.p95_ms)
    domain = log_domain([row["y"] for row in rows])
    axis = plain_axis("response time (ms)", domain, minExtent=_EXTENT)
    return _panel(rows, alt.Y("y:Q", axis=axis, scale=log_scale(domain)), x_axis, _HEIGHT)


def _rates(windows: Sequence[Window], x_axis: _XAxis) -> Any:
    rows = [
        _row(x_axis.x(window), getattr(window, name), name)
        for name in ("offered", "achieved", "goodput")
        for window in windows
    ]
    return _panel(rows, _from_zero("per second", rows), x_axis, _HEIGHT)


def _errors(windows: Sequence[Window], bounds: Bounds, x_axis: _XAxis) -> Any:
    rows = [_row(x_axis.x(window), 100 * window.error_ratio, "errors") for window in windows]
    rows += _limit_rows(x_axis, 100 * bounds.error_ratio)
    y = _from_zero("errors (%)", rows, 200 * bounds.error_ratio, ticks=3)
    return _panel(rows, y, x_axis, _LOW_HEIGHT, labelled=True)


def _row(x: float, y: float | None, what: str) -> dict[str, Any]:
    return {"x": x, "y": y, "what": what}


def _limit_rows(x_axis: _XAxis, limit: float) -> list[dict[str, Any]]:
    return [_row(x, limit, "limit") for x in (0, x_axis.end)]


def _from_zero(title: str, rows: list[dict[str, Any]], min_top: float = 0, ticks: int = 5) -> alt.Y:
    top = max(1.1 * max(row["y"] for row in rows), min_top) or 1.0
    axis = plain_axis(title, minExtent=_EXTENT, tickCount=ticks)
    return alt.Y("y:Q", axis=axis, scale=alt.Scale(domain=[0, top], nice=False))


def _panel(
    rows: list[dict[str, Any]], y: alt.Y, x_axis: _XAxis, height: int, *, labelled: bool = False
) -> Any:
    names = list(_STYLES)
    colours = alt.Scale(domain=names, range=[colour for colour, _ in _STYLES.values()])
    dashes = alt.Scale(domain=names, range=[dash for _, dash in _STYLES.values()])
    legend = alt.Legend(symbolType="stroke", symbolSize=500, columns=len(names))
    lines = (
        chart_of(rows)
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=x_axis.channel(labelled=labelled),
            y=y,
            color=alt.Color("what:N", scale=colours, legend=legend),
            strokeDash=alt.StrokeDash("what:N", scale=dashes, legend=legend),
        )
    )
    return alt.layer(lines).properties(width=_WIDTH, height=height)


def _with_break_line(panel: Any, point: BreakPoint | None, x_axis: _XAxis, index: int) -> Any:
    """Add the break point as a vertical line; the first panel labels it."""
    if point is None:
        return panel
    x = point.rate if x_axis.rate else point.seconds_into_test
    right = x > 0.8 * x_axis.end
    row = {"x": x, "text": f"broke at {rate(point.rate)}/s"}
    base = chart_of([row]).encode(x="x:Q")
    rule = base.mark_rule(color=VERMILLION, strokeWidth=1.5)
    if index:
        return panel + rule
    label = base.mark_text(
        align="right" if right else "left", baseline="top", dx=-5 if right else 5, color=VERMILLION
    ).encode(y=alt.value(3), text="text:N")
    return panel + rule + label
